// Provisions, suspends and resumes scheme tokens at card networks, and records their deletion. A token has one current
// scheme token; the network is called only if the state of that row isn't what the action wants.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import { provisionId } from '../../src/job/envelope/ids.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import { type Db, LostRace } from '../../src/store/pool.ts'
import type { NewScheme, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { type SchemeAction, type SchemeCall, stepOf } from '../../src/token/scheme.ts'
import { isSameCard } from '../../src/token/token.ts'
import type { SchemeResult } from '../networks.ts'
import type { ActionRules, Plan, PlanContext, ProviderAction } from './action-rules.ts'
import { providerOf } from './call-provider.ts'
import { pendingRow, storedCard } from './pending-card.ts'
import { actionRunner } from './run-actions.ts'

/** An action that a job, or one record of a chunk, requests for a token's scheme token. */
export interface NetworkAction extends ProviderAction {
  token: StoredToken
  scope: Scope
  /** `DELETE` is only recorded here; the loop calls the network. */
  action: SchemeAction
}

type Granted = Exclude<SchemeResult, Refusal>

interface Known {
  /** The current row of each token. */
  rows: ReadonlyMap<string, StoredScheme>
  /** How many provisionings each token has had. */
  counts: ReadonlyMap<string, number>
}

type Context = PlanContext<Known>

/** How callers see a network's refusals. */
export const NETWORK_REASONS: ActionRules<NetworkAction, Known, Granted>['reasons'] = {
  card_ineligible: 'scheme_card_ineligible',
  card_declined: 'scheme_card_declined',
  token_unknown: 'scheme_token_unknown',
  token_state: 'scheme_token_state',
  request_invalid: 'scheme_request_invalid',
  token_taken: 'scheme_request_invalid',
  no_answer: 'scheme_no_answer',
  unproved: 'scheme_token_unproved',
}

const rules: ActionRules<NetworkAction, Known, Granted> = {
  subjectOf: ({ token }) => ({ tokenId: token.tokenId, key: token.tokenId, bin: token.bin ?? '' }),
  hold: holdRows,
  rowOf: ({ token }, { rows }) => rows.get(token.tokenId),
  answerOf: (_, __, intent) => (intent?.state === 'DONE' ? 'changed' : undefined),
  plan,
  resultOf: () => 'changed',
  reasons: NETWORK_REASONS,
  limits: { busyMsMax: 5_000, interactiveJobsMax: Number.POSITIVE_INFINITY },
}

export const runNetworkActions = actionRunner(rules)

async function holdRows(db: Db, actions: readonly NetworkAction[]): Promise<Known> {
  const ids = actions.map(({ token }) => token.tokenId)
  // The token rows are locked first, and by themselves: of two jobs for the same token, the second sees what the first
  // has recorded.
  const held = await tokens.holdAll(db, ids)
  const [rows, counts] = await Promise.all([storedSchemes.holdCurrent(db, ids), storedSchemes.countOf(db, ids)])
  for (const { token } of actions) {
    const now = held.get(token.tokenId)
    if (!now || now.status === 'DELETED' || !isSameCard(now.cards, token.cards))
      throw new LostRace('a token was changed meanwhile')
  }
  return { rows: new Map(rows.map(row => [row.tokenId, row])), counts }
}

function plan(action: NetworkAction, context: Context): Plan<Granted> {
  const { row, intent, intentId, deps } = context
  if (row?.asked) return { plan: 'reconcile', provisionId: row.provisionId }
  const isOpen = intent?.state === 'INTENDED'
  // If the call of an earlier attempt had had an effect, the row would name its intent; so that intent is abandoned.
  const answered = (result: SchemeResult, reliesOn?: string): Plan<Granted> => ({
    plan: 'answered',
    result,
    ...(isOpen ? { intent: 'abandoned' } : {}),
    ...(reliesOn === undefined ? {} : { reliesOn }),
  })
  const call = (name: SchemeCall, id: string, newRow?: NewScheme): Plan<Granted> => ({
    plan: 'call',
    call: name,
    provisionId: id,
    isRepeat: false,
    ...(newRow ? { newRow } : {}),
  })
  const step = stepOf(row, action.action)
  switch (step) {
    case 'stays':
      if (isOpen && row?.lastIntent === intentId) return done(intent.action, row)
      // A job that was answered `same` relies on the call that caused this state, so that call is no longer
      // compensated.
      return answered('same', row?.retiredAt === null ? row.provisionId : undefined)
    case 'absent':
      return answered(refuse('scheme_token_absent', action.field))
    case 'retire':
      return row ? done('DELETE', row) : answered('same')
    case 'SUSPEND':
    case 'RESUME':
      if (!row || !providerOf(deps, row.provider)) return answered(refuse('scheme_action_unavailable', action.field))
      return call(step, row.provisionId)
    case 'PROVISION': {
      if (row?.state === 'PENDING' && row.retiredAt === null) return call(step, row.provisionId)
      const newRow = newRowFor(action, context.known.counts.get(action.token.tokenId) ?? 0, context)
      return isRefusal(newRow) ? answered(newRow) : call(step, newRow.provisionId, newRow)
    }
  }
}

function done(action: SchemeCall | 'DELETE', row: StoredScheme): Plan<Granted> {
  return { plan: 'answered', result: 'changed', intent: { done: action, provisionId: row.provisionId } }
}

/** The row of a new provisioning for the token's card. `count`: how many provisionings the token has had. */
export function newRowFor(
  { token, field }: Pick<NetworkAction, 'token' | 'field'>,
  count: number,
  { job, deps }: Pick<Context, 'job' | 'deps'>,
): NewScheme | Refusal {
  const network = deps.providers?.schemes.network(token.brand ?? '')
  if (!network) return refuse('scheme_action_unavailable', field)
  if (token.sealed === null) return refuse('not_applicable', field)
  const card = storedCard(token, deps.ring)
  if (!card) return refuse('field_required', 'body.expiry_year')
  const id = provisionId(job.receiptId, token.tokenId, count)
  const about = { provisionId: id, clientId: job.clientId, provider: network.name, background: false }
  return pendingRow(token, card, about, deps)
}
