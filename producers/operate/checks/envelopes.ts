// Whether workers drop envelopes, and which client the envelopes claim: a revoked client, a client with a wrong key, or
// none that exists, which means that a stranger writes to the queue server.
import * as clients from '../../../src/store/access/clients.ts'
import * as droppedEnvelopes from '../../../src/store/access/dropped-envelopes.ts'
import { count, duration } from '../../../src/units.ts'
import { type Verdict, warning, well } from '../check.ts'
import type { WorkSources } from './work.ts'

const LATE_MS = 10 * 60_000
const SHOWN_MAX = 5

export async function askEnvelopes({ store, now }: Pick<WorkSources, 'store' | 'now'>): Promise<Verdict> {
  const db = await store()
  const late = await droppedEnvelopes.listLate(db, LATE_MS)
  if (late.length === 0) return well(`no envelope was dropped within ${duration(LATE_MS)}`)
  const names = new Map((await clients.list(db)).map(({ clientId, name }) => [clientId, name]))
  const shown = late.slice(0, SHOWN_MAX).map(({ claimedClient, reason, dropped }) => {
    const who = claimedClient === undefined ? 'no known client' : (names.get(claimedClient) ?? claimedClient)
    return `${who}: ${dropped.toLocaleString('en')} (${reason})`
  })
  const more = late.length > shown.length ? `, and ${late.length - shown.length} more` : ''
  const all = count(
    late.reduce((sum, { dropped }) => sum + dropped, 0),
    'envelope',
  )
  const lastAgo = duration(Math.max(0, now - Math.max(...late.map(({ lastAt }) => lastAt))))
  return warning(
    `${all} dropped, the last ${lastAgo} ago; by what they claim, which nobody has proved: ${shown.join(', ')}${more}`,
    'ask the owner of that client; if it did not send them, somebody else can write to the queue server',
  )
}
