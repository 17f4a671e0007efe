// Has networks make the scheme tokens of cards that tokens are about to get, before the vault decides about those cards:
// a network that declines refuses the whole change. Such a provisioning is untaken: the token shows its former one until
// the commit, which takes the new one over. A provisioning that no commit takes is retired.
import { isRefusal } from '../../src/errors.ts'
import { relinkIntentId } from '../../src/job/envelope/ids.ts'
import { type Db, LostRace } from '../../src/store/pool.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { isSameCard } from '../../src/token/token.ts'
import type { MadeScheme } from '../networks.ts'
import type { ActionRules, Plan, PlanContext, ProviderAction } from './action-rules.ts'
import { NETWORK_REASONS, newRowFor } from './network-actions.ts'
import { actionRunner } from './run-actions.ts'

/** An `ACTIVATE` beside another number. */
export interface RelinkAction extends ProviderAction {
  /** The token as it will be stored, with the new card. */
  token: StoredToken
  intentId: string
}

interface Known {
  /** The provisioning that each intent names. */
  rows: ReadonlyMap<string, StoredScheme>
  /** How many provisionings each token has had. */
  counts: ReadonlyMap<string, number>
}

/**
 * The intent belongs to this card with this date: another request under the same jti, of which no receipt is left, must
 * not take what was made for another card.
 */
export function relinkAction(receiptId: string, token: StoredToken, at: ProviderAction): RelinkAction {
  const { tokenId, cards, expiryMonth, expiryYear } = token
  return { ...at, token, intentId: relinkIntentId(receiptId, tokenId, `${cards[0]} ${expiryMonth}/${expiryYear}`) }
}

const rules: ActionRules<RelinkAction, Known, MadeScheme> = {
  subjectOf: ({ token }) => ({ tokenId: token.tokenId, key: token.tokenId, bin: token.bin ?? '' }),
  hold: holdRows,
  rowOf: ({ intentId }, { rows }) => rows.get(intentId),
  answerOf: () => undefined,
  plan,
  resultOf: ({ provisionId }) => ({ provisionId }),
  reasons: NETWORK_REASONS,
  limits: { busyMsMax: 5_000, interactiveJobsMax: Number.POSITIVE_INFINITY },
}

export const runRelinkActions = actionRunner(rules)

async function holdRows(db: Db, actions: readonly RelinkAction[]): Promise<Known> {
  const ids = actions.map(({ token }) => token.tokenId)
  const held = await tokens.holdAll(db, ids)
  for (const { token } of actions) {
    const now = held.get(token.tokenId)
    // A token that has got this card meanwhile has the scheme token that it shows activated.
    if (!now || now.status === 'DELETED' || isSameCard(now.cards, token.cards))
      throw new LostRace('a token was changed meanwhile')
  }
  // Under the receipt's lock nobody else changes which provisioning an intent names.
  const recorded = await intents.findByIds(
    db,
    actions.map(({ intentId }) => intentId),
  )
  const [rows, counts] = await Promise.all([
    storedSchemes.holdAll(
      db,
      recorded.map(({ provisionId }) => provisionId),
    ),
    storedSchemes.countOf(db, ids),
  ])
  const byId = new Map(rows.map(row => [row.provisionId, row]))
  const named = recorded.flatMap(({ intentId, provisionId }) => {
    const row = byId.get(provisionId)
    return row ? [[intentId, row] as const] : []
  })
  return { rows: new Map(named), counts }
}

function plan({ token, field }: RelinkAction, context: PlanContext<Known>): Plan<MadeScheme> {
  const { row, known, intent } = context
  if (row && isUntaken(row)) {
    const { provisionId } = row
    if (row.asked) return { plan: 'reconcile', provisionId }
    if (row.state === 'PENDING') return { plan: 'call', call: 'PROVISION', provisionId, isRepeat: false }
    // An earlier attempt, or the loop after it, has learned the network's answer.
    const isOpen = intent?.state === 'INTENDED'
    const result = { provisionId }
    return { plan: 'answered', result, ...(isOpen ? { intent: { done: 'PROVISION', provisionId } } : {}) }
  }
  const newRow = newRowFor({ token, field }, known.counts.get(token.tokenId) ?? 0, context)
  if (isRefusal(newRow)) return { plan: 'answered', result: newRow }
  const { provisionId } = newRow
  return { plan: 'call', call: 'PROVISION', provisionId, isRepeat: false, newRow: { ...newRow, isUntaken: true } }
}

/** Whether a commit may still take the row over. */
function isUntaken({ current, retiredAt, state }: StoredScheme): boolean {
  return !current && retiredAt === null && state !== 'VOID'
}
