// Runs what jobs ask of providers, in rounds: intents are recorded and rows leased in a transaction, the providers are
// called outside every transaction, and the answers are written under the lease. After a crash the next attempt of the
// job continues from the recorded intents. The rules of networks are in network-actions.ts and relink-actions.ts, those of
// third parties in third-party-actions.ts.

import { Fault, type Refusal, refuse } from '../../src/errors.ts'
import { interleave } from '../../src/scheme/interleave.ts'
import type { Urgency } from '../../src/scheme/provider.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { ActingJob } from '../networks.ts'
import { Postponed } from '../work.ts'
import type { ActionRules, Plan, ProviderAction } from './action-rules.ts'
import { callProvider, findProvisioned } from './call-provider.ts'
import type { ProviderDeps } from './deps.ts'
import { AGAIN_MS, interpretAnswer } from './interpret-answer.ts'
import { allSettledThenThrow, type Lease, openLease } from './lease.ts'
import { reconcileRow } from './reconcile/reconcile-row.ts'
import { type PlannedAction, recordIntents } from './record-intents.ts'
import { writeAnswer } from './write-answer.ts'

/** How often one attempt of a job may plan the same action. */
const ROUNDS_MAX = 4
const CROWDED_MS = 100
const UNAVAILABLE_MS = 2_000

/**
 * Runs actions. Returns the result of each, by line. Throws `Postponed` or `Fault('scheme_away')` if an action has no
 * result yet; results that exist are stored.
 */
export type RunActions<Action, Result> = (
  job: ActingJob,
  actions: readonly Action[],
  urgency: Urgency,
  deps: ProviderDeps,
) => Promise<Map<number, Result | Refusal>>

interface Run<Action extends ProviderAction, Known, Result> {
  rules: ActionRules<Action, Known, Result>
  job: ActingJob
  urgency: Urgency
  deps: ProviderDeps
}

/** How a round ended for an action. `again`: the action is planned once more. */
type End<Result> = { end: 'result'; result: Result | Refusal } | { end: 'wait'; error: Error } | { end: 'again' }

export function actionRunner<Action extends ProviderAction, Known, Result>(
  rules: ActionRules<Action, Known, Result>,
): RunActions<Action, Result> {
  let jobs = 0
  return async (job, actions, urgency, deps) => {
    const run = { rules, job, urgency, deps }
    if (urgency === 'bulk') return runGroups(run, actions)
    if (jobs >= rules.limits.interactiveJobsMax) throw new Postponed(Math.round(CROWDED_MS * (1 + Math.random())))
    jobs += 1
    try {
      return await runGroups(run, actions)
    } finally {
      jobs -= 1
    }
  }
}

async function runGroups<Action extends ProviderAction, Known, Result>(
  run: Run<Action, Known, Result>,
  actions: readonly Action[],
): Promise<Map<number, Result | Refusal>> {
  const results = new Map<number, Result | Refusal>()
  for (const group of groupsOf(actions, action => run.rules.subjectOf(action).key)) {
    const errors = await runRounds(run, group, results)
    const worst = worstOf(errors, run.urgency)
    if (worst) throw worst
  }
  return results
}

/** Actions with one key follow each other, in groups; actions with different keys run at the same time. */
function groupsOf<Action>(actions: readonly Action[], keyOf: (action: Action) => string): Action[][] {
  const groups: Action[][] = []
  const counts = new Map<string, number>()
  for (const action of actions) {
    const key = keyOf(action)
    const index = counts.get(key) ?? 0
    counts.set(key, index + 1)
    groups[index] = [...(groups[index] ?? []), action]
  }
  return groups
}

/** Runs the actions of a group, and returns the errors of those that have no result yet. */
async function runRounds<Action extends ProviderAction, Known, Result>(
  run: Run<Action, Known, Result>,
  group: readonly Action[],
  results: Map<number, Result | Refusal>,
): Promise<Error[]> {
  const { rules, job, deps } = run
  const errors: Error[] = []
  let open = group
  for (let round = 0; round < ROUNDS_MAX && open.length > 0; round += 1) {
    const lease = openLease(deps)
    try {
      const recording = { rules, job, actions: open, lease }
      const planned = await deps.store.transaction(db => recordIntents(db, recording, deps))
      const ordered = interleave(planned, ({ action }) => rules.subjectOf(action).bin)
      const ended = await allSettledThenThrow(
        ordered.map(async one => ({ action: one.action, ...(await runPlan(run, one, lease)) })),
      )
      for (const one of ended) {
        if (one.end === 'result') results.set(one.action.line, one.result)
        if (one.end === 'wait') errors.push(one.error)
      }
      open = ended.filter(({ end }) => end === 'again').map(({ action }) => action)
    } finally {
      lease.end()
    }
  }
  return open.length > 0 ? [...errors, new Postponed(AGAIN_MS)] : errors
}

async function runPlan<Action extends ProviderAction, Known, Result>(
  run: Run<Action, Known, Result>,
  planned: PlannedAction<Action, Result>,
  lease: Lease,
): Promise<End<Result>> {
  const { plan } = planned
  switch (plan.plan) {
    case 'answered':
      return { end: 'result', result: plan.result }
    case 'busy':
      return { end: 'wait', error: new Postponed(Math.min(plan.ms, run.rules.limits.busyMsMax)) }
    case 'overtaken':
      return { end: 'again' }
    case 'reconcile':
      return reconcile(run, plan.provisionId, lease)
    case 'call':
      return call(run, { ...planned, plan }, lease)
  }
}

async function reconcile<Action extends ProviderAction, Known, Result>(
  { urgency, deps }: Run<Action, Known, Result>,
  provisionId: string,
  lease: Lease,
): Promise<End<Result>> {
  const row = await storedSchemes.find(deps.store, provisionId)
  if (row?.lease !== lease.id) return { end: 'again' }
  const after = await reconcileRow(row, lease.id, urgency, deps)
  const isKnown = after === undefined || after.asked === null
  return isKnown ? { end: 'again' } : { end: 'wait', error: new Fault('scheme_away') }
}

/** Calls the provider. If an earlier call may have had its effect, first makes sure that it had none. */
async function call<Action extends ProviderAction, Known, Result>(
  { rules, urgency, deps }: Run<Action, Known, Result>,
  { action, intentId, plan }: { action: Action; intentId: string; plan: Extract<Plan<Result>, { plan: 'call' }> },
  lease: Lease,
): Promise<End<Result>> {
  const row = await storedSchemes.find(deps.store, plan.provisionId)
  if (row?.lease !== lease.id) return { end: 'again' }
  // The card of a third party's token is erased once the token is retired, so no call is possible.
  if (row.thirdParty && row.retiredAt !== null) return { end: 'again' }
  const found = plan.isRepeat ? await findProvisioned(row, urgency, deps) : undefined
  const isToBeCalled = found === undefined || found.answer === 'no-effect'
  const answer = isToBeCalled ? await callProvider(row, plan.call, urgency, deps) : found
  const { update, end, intent } = interpretAnswer(
    { row, call: plan.call, answer, refusalOf: denial => refuse(rules.reasons[denial], action.field) },
    deps,
  )
  const written = await writeAnswer(update, lease.id, deps, { intent: { intentId, ...intent } })
  if (!written) {
    if (plan.call === 'PROVISION' && answer.answer === 'token')
      await schemeTokens.reclaim(deps.store, update, deps.clock())
    return { end: 'again' }
  }
  if (end instanceof Error) return { end: 'wait', error: end }
  return { end: 'result', result: end === 'done' ? rules.resultOf(written) : end }
}

/** The error that decides. A batch waits for its provider; a single job uses up an attempt if there is a fault. */
function worstOf(errors: readonly Error[], urgency: Urgency): Error | undefined {
  const fault = errors.find(error => error instanceof Fault)
  if (fault) return urgency === 'bulk' ? new Postponed(Math.round(UNAVAILABLE_MS * (0.5 + Math.random()))) : fault
  return errors.toSorted((a, b) => (b instanceof Postponed ? b.ms : 0) - (a instanceof Postponed ? a.ms : 0))[0]
}
