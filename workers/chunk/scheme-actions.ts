// Asks networks for what the updates of a chunk want of their tokens' scheme tokens (`scheme_token_action`), in recorded
// steps per record, before the chunk is decided. An interrupted chunk continues where it stopped.
import { refuse } from '../../src/errors.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import type { SchemeAction } from '../../src/token/scheme.ts'
import { supportRefusal } from '../card/scheme-view.ts'
import type { Deps } from '../deps.ts'
import type { ActingJob, AskedAction } from '../networks.ts'
import { foldChanges, type PreparedChange, visibleTokens } from './changes.ts'
import type { ActedRecord, ActedRecords, ChunkContext } from './chunk.ts'

/** A record waits for the answers to earlier records of its token. Throws `Postponed` if a network must be waited for. */
export async function actForChanges(
  changes: readonly PreparedChange[],
  context: ChunkContext,
  mayHaveReceipt: boolean,
  deps: Deps,
): Promise<ActedRecords> {
  const acted = new Map<number, ActedRecord>()
  if (!changes.some(change => 'given' in change && change.schemeAction !== undefined)) return acted
  const job = actingJob(context, mayHaveReceipt)
  const visible = await visibleTokens(changes, context, deps)
  const folding = { context, deps, visible, acted, stops: true }
  for (;;) {
    const { waiting } = await foldChanges(changes, folding)
    if (waiting.length === 0) return acted
    // A scheme token that exists belongs to the stored card, and a new one to the card that the record gives.
    const wanted = waiting.map(({ base, row, ...one }) => ({ ...one, token: one.isRelinked ? row : base }))
    for (const [line, end] of await ask(wanted, job, deps)) acted.set(line, end)
  }
}

export function actingJob({ work: { receiptId, client } }: ChunkContext, mayHaveReceipt: boolean): ActingJob {
  return { receiptId, clientId: client.clientId, mayHaveReceipt }
}

interface Wanted extends Pick<AskedAction, 'line' | 'isRelinked'> {
  action: SchemeAction
  /** Undefined if the sender sees no such token. */
  token: StoredToken | undefined
}

/** Asks networks, and returns how each request ended, by line. */
export async function ask(wanted: readonly Wanted[], job: ActingJob, deps: Deps): Promise<Map<number, ActedRecord>> {
  const ends = new Map<number, ActedRecord>()
  const asked: AskedAction[] = []
  for (const { token, ...one } of wanted) {
    const scope = token && (await deps.directory.scope(token.tokenScope))
    const refusal = token && scope ? supportRefusal(scope) : refuse('token_not_found', 'body.id')
    if (refusal || !token || !scope) ends.set(one.line, refusal ?? refuse('token_not_found', 'body.id'))
    else asked.push({ ...one, token, scope })
  }
  for (const [line, end] of await deps.networks.schemeTokens.actForRecords(job, asked, deps)) ends.set(line, end)
  return ends
}
