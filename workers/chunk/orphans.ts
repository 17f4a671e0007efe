// Tokens that lost their last owner through the records of a chunk. They are kept, suspended or deleted, as the batch's
// `on_orphan` says.
import { isRefusal } from '../../src/errors.ts'
import type { Db } from '../../src/store/pool.ts'
import * as references from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { lifecycle } from '../../src/token/decide.ts'
import type { Deps } from '../deps.ts'
import type { Effect } from '../line/effect.ts'
import { writeEffects } from '../line/write-effect.ts'
import type { ChunkContext } from './chunk.ts'
import { reversibleSince } from './claims.ts'

const ACTIONS = { keep: undefined, suspend: 'SUSPEND', delete: 'DELETE' } as const

/** What is done to a token without owners; undefined: nothing. */
export function orphanAction({ work }: Pick<ChunkContext, 'work'>): 'SUSPEND' | 'DELETE' | undefined {
  return ACTIONS[work.request.policy?.on_orphan ?? 'keep']
}

/**
 * Suspends or deletes them. `left`: ids of tokens whose rows the transaction holds. Returns the tokens that were
 * changed, with their new rows.
 */
export async function endOrphans(
  db: Db,
  left: readonly string[],
  context: ChunkContext,
  deps: Deps,
): Promise<Map<string, StoredToken>> {
  const action = orphanAction(context)
  if (!action || left.length === 0) return new Map()
  const { now, receiptId } = context.work
  const owners = await references.countClaims(db, left, reversibleSince(now))
  const orphans = left.filter(tokenId => !owners.has(tokenId))
  if (orphans.length === 0) return new Map()
  const ended = (await tokens.findByIds(db, orphans)).flatMap(row => {
    const verdict = lifecycle(row, action, { now, receiptId }, 'body.id')
    if (isRefusal(verdict) || !verdict.changed) return []
    return [{ ...verdict.row, sealVersion: verdict.row.sealed === null ? null : row.sealVersion }]
  })
  await writeEffects(db, [effectOf(ended)], deps)
  return new Map(ended.map(row => [row.tokenId, row]))
}

function effectOf(updates: readonly StoredToken[]): Effect {
  const deleted = updates.filter(({ status }) => status === 'DELETED').map(({ tokenId }) => tokenId)
  return { updates, erasedImages: deleted, retirements: deleted }
}
