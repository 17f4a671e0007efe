// The link that `start` prints on the embedded engine: it signs in the local person, once, within an hour. Only a hash
// is stored, of the value that the browser derives from the link's secret.
import { randomBytes } from 'node:crypto'
import { ensureLocalPerson } from '../../src/acts/person.ts'
import * as challenges from '../../src/store/console/challenges.ts'
import { hashOfLookup, lookupOf } from '../../src/vault/passkey/invite-key.ts'
import type { OpenedVault } from '../open/open.ts'

const LASTS_MS = 3_600_000

/** `origin`: the console's. */
export async function makeStartLink(vault: Pick<OpenedVault, 'store' | 'ring'>, origin: string): Promise<string> {
  const personId = await ensureLocalPerson(vault)
  const secret = randomBytes(32).toString('base64url')
  const lookupHash = hashOfLookup(lookupOf(secret))
  await challenges.replaceStartLink(vault.store, { lookupHash, personId, lastsMs: LASTS_MS })
  return `${origin}/welcome#${secret}`
}
