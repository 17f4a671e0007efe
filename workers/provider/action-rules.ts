// The interface through which run-actions.ts handles one sort of provider action, such as scheme tokens of card
// networks or reuse tokens of third parties. A missing part doesn't compile.
import type { Reason, Refusal } from '../../src/errors.ts'
import { PROVIDER_REFUSALS } from '../../src/scheme/provider.ts'
import type { Db } from '../../src/store/pool.ts'
import type { SchemeIntent } from '../../src/store/provider/scheme-intents.ts'
import type { NewScheme, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import type { SchemeCall } from '../../src/token/scheme.ts'
import type { ActingJob } from '../networks.ts'
import type { ProviderDeps } from './deps.ts'

export interface ProviderAction {
  /** The record's line in its chunk; 0 for a single job. */
  line: number
  /** The field that a refusal names. */
  field: string
  /** The id of its intent, if the line isn't what identifies the action. */
  intentId?: string
}

export interface Subject {
  tokenId: string
  /** Actions with the same key run one after the other. */
  key: string
  bin: string
}

/** The stored words for why a provider made no token. */
export const DENIALS = [...PROVIDER_REFUSALS, 'token_taken', 'no_answer', 'unproved'] as const
export type Denial = (typeof DENIALS)[number]

/** What a plan is made from, besides the action. */
export interface PlanContext<Known> {
  known: Known
  row: StoredScheme | undefined
  intentId: string
  /** The intent that an earlier attempt of the job recorded. */
  intent: SchemeIntent | undefined
  job: ActingJob
  deps: Pick<ProviderDeps, 'ring' | 'clock' | 'providers' | 'onUnproved'>
}

export type Plan<Result> =
  /** The stored state is already what the action wants. */
  | { plan: 'answered'; result: Result | Refusal; intent?: IntentUpdate; reliesOn?: string }
  /** Another job is calling the provider about this row, for at most `ms` more. */
  | { plan: 'busy'; ms: number }
  /** The outcome of another job's call must be known before this action is planned. */
  | { plan: 'reconcile'; provisionId: string }
  /** `isRepeat`: an earlier call may have had its effect. */
  | { plan: 'call'; call: SchemeCall; provisionId: string; isRepeat: boolean; newRow?: NewScheme }

/** What happens to the job's intent. `DELETE` also retires the token's rows. */
export type IntentUpdate = 'abandoned' | { done: SchemeIntent['action']; provisionId: string }

export interface ActionRules<Action extends ProviderAction, Known, Result> {
  subjectOf(action: Action): Subject
  /** Locks and reads the rows that the actions are about. Throws `LostRace` if an action isn't valid any more. */
  hold(db: Db, actions: readonly Action[]): Promise<Known>
  rowOf(action: Action, known: Known): StoredScheme | undefined
  /** The answer that doesn't depend on the row. */
  answerOf(action: Action, known: Known, intent: SchemeIntent | undefined): Result | undefined
  /** Plans an action whose row is not under a lease. Reads and writes nothing. */
  plan(action: Action, context: PlanContext<Known>): Plan<Result>
  /** The result of a call that had its effect; `row` holds the provider's answer. */
  resultOf(row: StoredScheme): Result
  /** Maps refusals to the reasons that callers see. */
  reasons: Record<Denial, Reason>
  limits: {
    /** How long a job waits at most before it looks again at a row that another job has leased. */
    busyMsMax: number
    /** How many single jobs of this process may run such actions at the same time. */
    interactiveJobsMax: number
  }
}
