// Records what a job is about to ask of providers. In one short transaction, under the lock of the job's receipt, each
// action is either answered by the stored state, or written as an intent on a leased row. No provider is called here.
import { assert, refuse } from '../../src/errors.ts'
import { schemeIntentId } from '../../src/job/envelope/ids.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { type Db, hold, LostRace } from '../../src/store/pool.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import type { NewScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { ActingJob } from '../networks.ts'
import { type ActionRules, DENIALS, type Plan, type PlanContext, type ProviderAction } from './action-rules.ts'
import type { ProviderDeps } from './deps.ts'
import type { Lease } from './lease.ts'

export interface PlannedAction<Action, Result> {
  action: Action
  intentId: string
  /** `overtaken`: another job has just inserted the row that this action needs. */
  plan: Plan<Result> | { plan: 'overtaken' }
}

interface Recording<Action extends ProviderAction, Known, Result> {
  rules: ActionRules<Action, Known, Result>
  job: ActingJob
  /** No two actions have the same subject. */
  actions: readonly Action[]
  lease: Lease
}

/**
 * Throws `LostRace` if the job has got a receipt meanwhile (not checked for a job that may have one), or if an action
 * isn't valid any more (`ActionRules.hold`).
 */
export async function recordIntents<Action extends ProviderAction, Known, Result>(
  db: Db,
  recording: Recording<Action, Known, Result>,
  deps: ProviderDeps,
): Promise<PlannedAction<Action, Result>[]> {
  const { rules, job, actions } = recording
  await hold(db, job.receiptId)
  if (!job.mayHaveReceipt && (await receipts.find(db, job.receiptId)) !== undefined)
    throw new LostRace('the receipt was written meanwhile')
  const known = await rules.hold(db, actions)
  // Read after the rows were locked: an earlier attempt may still write its answer, to row and intent at once.
  const idOf = (action: Action) => action.intentId ?? schemeIntentId(job.receiptId, action.line)
  const recorded = new Map((await intents.findByIds(db, actions.map(idOf))).map(intent => [intent.intentId, intent]))
  const planned = actions.map((action): PlannedAction<Action, Result> => {
    const intentId = idOf(action)
    const row = rules.rowOf(action, known)
    const context = { known, row, intentId, intent: recorded.get(intentId), job, deps }
    return { action, intentId, plan: planAction(action, context, rules) }
  })
  return write(db, planned, recording, deps.clock())
}

function planAction<Action extends ProviderAction, Known, Result>(
  action: Action,
  context: PlanContext<Known>,
  rules: ActionRules<Action, Known, Result>,
): Plan<Result> {
  const { known, row, intent, deps } = context
  const result = rules.answerOf(action, known, intent)
  if (result !== undefined) return { plan: 'answered', result }
  if (intent?.state === 'REFUSED') {
    const denial = DENIALS.find(one => one === intent.refusal)
    assert(denial, 'a refused intent says why')
    return { plan: 'answered', result: refuse(rules.reasons[denial], action.field) }
  }
  const now = deps.clock()
  if (row?.lease && row.dueAt !== null && row.dueAt > now) return { plan: 'busy', ms: row.dueAt - now }
  return rules.plan(action, context)
}

async function write<Action extends ProviderAction, Known, Result>(
  db: Db,
  planned: readonly PlannedAction<Action, Result>[],
  { rules, job: { receiptId }, lease }: Recording<Action, Known, Result>,
  now: number,
): Promise<PlannedAction<Action, Result>[]> {
  const overtaken = await insertRows(
    db,
    planned.flatMap(({ plan }) => (plan.plan === 'call' ? (plan.newRow ?? []) : [])),
  )
  const written = planned.map(one =>
    one.plan.plan === 'call' && overtaken.has(one.plan.provisionId)
      ? { ...one, plan: { plan: 'overtaken' as const } }
      : one,
  )
  const intentOf = ({ action, intentId }: PlannedAction<Action, Result>) => ({
    intentId,
    receiptId,
    tokenId: rules.subjectOf(action).tokenId,
  })
  const calls = written.flatMap(one =>
    one.plan.plan === 'call' ? [{ ...intentOf(one), provisionId: one.plan.provisionId, action: one.plan.call }] : [],
  )
  const done = written.flatMap(one => {
    const update = one.plan.plan === 'answered' ? one.plan.intent : undefined
    if (update === undefined || update === 'abandoned') return []
    return [{ ...intentOf(one), provisionId: update.provisionId, action: update.done }]
  })
  await schemeTokens.leaseAll(
    db,
    calls.map(({ provisionId, action: asked, intentId }) => ({ provisionId, asked, intentId })),
    lease.id,
    lease.until(),
  )
  // Asking about another job's call isn't a call of this job: the row keeps its last call and that call's job.
  const questions = written.flatMap(({ plan }) => (plan.plan === 'reconcile' ? [plan.provisionId] : []))
  if (questions.length > 0) await schemeTokens.take(db, questions, lease.id, now, lease.until())
  await intents.intendAll(db, [...calls, ...done], now)
  await schemeTokens.retireOf(
    db,
    done.filter(({ action }) => action === 'DELETE').map(({ tokenId }) => tokenId),
    now,
  )
  await intents.confirmAll(
    db,
    done.map(({ intentId }) => intentId),
    now,
  )
  const answered = written.flatMap(({ intentId, plan }) => (plan.plan === 'answered' ? [{ intentId, ...plan }] : []))
  await intents.abandon(
    db,
    answered.filter(({ intent }) => intent === 'abandoned').map(({ intentId }) => intentId),
    now,
  )
  await schemeTokens.buildOn(
    db,
    answered.flatMap(({ reliesOn }) => reliesOn ?? []),
  )
  return written
}

/** Inserts provisionings. Returns those that were not inserted, because other jobs were first with their cards. */
async function insertRows(db: Db, rows: readonly NewScheme[]): Promise<ReadonlySet<string>> {
  await schemeTokens.displace(
    db,
    rows.filter(({ thirdParty, isUntaken }) => !thirdParty && !isUntaken).map(({ tokenId }) => tokenId),
  )
  if ((await schemeTokens.insertAll(db, rows)) === rows.length) return new Set()
  // The second of two transactions for the same card has waited for the first and inserted nothing.
  const stored = await storedSchemes.findAll(
    db,
    rows.map(({ provisionId }) => provisionId),
  )
  const made = new Set(stored.map(({ provisionId }) => provisionId))
  return new Set(rows.map(({ provisionId }) => provisionId).filter(id => !made.has(id)))
}
