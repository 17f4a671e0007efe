// The link that `start` prints on the embedded engine: it signs in the local person, once, within an hour. Only the hash of
// its secret is stored.
import { randomBytes } from 'node:crypto'
import { ensureLocalPerson, hashOf } from '../../src/acts/person.ts'
import * as challenges from '../../src/store/console/challenges.ts'
import type { OpenedVault } from '../open/open.ts'

const LASTS_MS = 3_600_000

/** `origin`: the console's. */
export async function makeStartLink(vault: OpenedVault, origin: string): Promise<string> {
  const personId = await ensureLocalPerson(vault)
  const secret = randomBytes(32).toString('base64url')
  await challenges.replaceStartLink(vault.store, { secretHash: hashOf(secret), personId, lastsMs: LASTS_MS })
  return `${origin}/welcome#${secret}`
}
