// Tokens that have lost their last owner: kept, suspended or deleted, as the job or the batch that took the owner says.
import { isRefusal } from '../../src/errors.ts'
import type { OnOrphan } from '../../src/job/choices.ts'
import type { Db } from '../../src/store/pool.ts'
import * as references from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { lifecycle } from '../../src/token/decide.ts'
import type { Moment } from '../../src/token/verdict.ts'
import { reversibleSince } from '../card/before-image.ts'
import { type EffectDeps, writeEffects } from '../effect/write-effect.ts'

const EVENTS = { keep: undefined, suspend: 'SUSPEND', delete: 'DELETE' } as const satisfies Record<OnOrphan, unknown>

/**
 * `left`: the tokens that lost an owner, by id, and what happens to those without another owner. The transaction has
 * locked their rows. Returns those that were suspended or deleted, as they are now.
 */
export async function endOrphans(
  db: Db,
  left: ReadonlyMap<string, OnOrphan>,
  job: Moment,
  deps: EffectDeps,
): Promise<Map<string, StoredToken>> {
  const asked = [...left].filter(([, onOrphan]) => EVENTS[onOrphan] !== undefined).map(([tokenId]) => tokenId)
  const owners = await references.countClaims(db, asked, reversibleSince(job.now), 1)
  const orphans = asked.filter(tokenId => !owners.has(tokenId))
  if (orphans.length === 0) return new Map()
  const updates = (await tokens.findByIds(db, orphans)).flatMap(row => {
    const event = EVENTS[left.get(row.tokenId) ?? 'keep']
    const verdict = event && lifecycle(row, event, job, 'body')
    if (!verdict || isRefusal(verdict) || !verdict.changed) return []
    return [{ ...verdict.row, sealVersion: verdict.row.sealed === null ? null : row.sealVersion }]
  })
  const deleted = updates.filter(({ status }) => status === 'DELETED').map(({ tokenId }) => tokenId)
  await writeEffects(db, [{ updates, erasedImages: deleted }], deps)
  return new Map(updates.map(row => [row.tokenId, row]))
}
