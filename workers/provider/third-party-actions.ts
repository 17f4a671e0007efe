// Has third parties make the reuse tokens of cards, before the vault decides about those cards. Several jobs may want a
// token for the same card under the same contract: one of them calls, and the job that inserts the token's row uses the
// token.
import { type Refusal, refuse } from '../../src/errors.ts'
import { provisionId } from '../../src/job/envelope/ids.ts'
import type { ProvisionCard } from '../../src/scheme/provider.ts'
import type { Db } from '../../src/store/pool.ts'
import { isReferenceProved, type StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { Fingerprints } from '../../src/token/token.ts'
import { keyOf } from '../card/by-card.ts'
import type { ContractCard, MadeToken, ThirdPartyResult } from '../networks.ts'
import type { ActionRules, Plan, PlanContext, ProviderAction } from './action-rules.ts'
import { pendingRow } from './pending-card.ts'
import { actionRunner } from './run-actions.ts'

/** A card that needs a third party's token. A job names each card once. */
export interface ThirdPartyAction extends ProviderAction {
  /** The fingerprints of the card under its contract. */
  fingerprints: Fingerprints
  /** The id of the token row that will be inserted. */
  tokenId: string
  tokenScope: string
  bin: string
  card: ProvisionCard
  /** The third party's name. */
  provider: string
}

/** The action for a card. */
export function actionOf({ line, field, contract, facts, pan, row }: ContractCard): ThirdPartyAction {
  const { provider, expiryMonth, expiryYear } = contract
  const { fingerprints, bin } = facts
  const dates = { expiryMonth: row.expiryMonth ?? expiryMonth, expiryYear: row.expiryYear ?? expiryYear }
  const card = { pan, ...dates, cardHolderName: row.cardHolderName ?? undefined }
  return { line, field, tokenId: row.tokenId, tokenScope: row.tokenScope, fingerprints, bin, card, provider }
}

type Granted = Exclude<ThirdPartyResult, Refusal>

interface Known {
  /** Provisionings by each fingerprint. */
  rows: ReadonlyMap<string, StoredScheme>
  /** Fingerprints of cards that have a token. */
  cards: ReadonlySet<string>
}

const rules: ActionRules<ThirdPartyAction, Known, Granted> = {
  subjectOf: action => ({ tokenId: action.tokenId, key: keyOf(action.fingerprints), bin: action.bin }),
  hold: holdRows,
  rowOf: ({ fingerprints }, { rows }) => fingerprints.known.map(fp => rows.get(fp)).find(row => row !== undefined),
  answerOf: ({ fingerprints }, { cards }) => (fingerprints.known.some(fp => cards.has(fp)) ? 'known' : undefined),
  plan,
  resultOf: provisionedOf,
  reasons: {
    card_ineligible: 'third_party_card_ineligible',
    card_declined: 'third_party_card_declined',
    token_unknown: 'third_party_request_invalid',
    token_state: 'third_party_request_invalid',
    request_invalid: 'third_party_request_invalid',
    token_taken: 'third_party_token_taken',
    no_answer: 'third_party_card_declined',
    unproved: 'scheme_token_unproved',
  },
  // A slow third party must not occupy all places for single jobs: other creates need them.
  limits: { busyMsMax: 500, interactiveJobsMax: 4 },
}

export const runThirdPartyActions = actionRunner(rules)

async function holdRows(db: Db, actions: readonly ThirdPartyAction[]): Promise<Known> {
  const fps = actions.flatMap(({ fingerprints }) => fingerprints.known)
  // Provisionings are read before tokens: the job that makes a token marks its provisioning as used before it writes
  // the token. In the other order a token could be missed.
  const rows = await storedSchemes.holdByCards(db, fps)
  const stored = await tokens.findByCards(db, fps)
  return {
    rows: new Map(rows.flatMap(row => row.cards.map(fp => [fp, row]))),
    cards: new Set(stored.flatMap(({ cards }) => cards)),
  }
}

function plan(action: ThirdPartyAction, { row, job, deps }: PlanContext<Known>): Plan<Granted> {
  if (row?.state === 'ACTIVE') {
    // Another job that hasn't ended may have made this token: the first job that inserts the token's row uses it.
    const intent = { done: 'PROVISION', provisionId: row.provisionId } as const
    if (isReferenceProved(row, deps.ring)) return { plan: 'answered', result: provisionedOf(row), intent }
    deps.onUnproved('scheme_token', row.provisionId)
    return { plan: 'answered', result: refuse('scheme_token_unproved', action.field) }
  }
  if (row) return { plan: 'call', call: 'PROVISION', provisionId: row.provisionId, isRepeat: row.asked !== null }
  const { tokenId, provider, card, fingerprints: link } = action
  const id = provisionId(job.receiptId, tokenId, 0)
  const about = { provisionId: id, clientId: job.clientId, provider, background: false }
  const newRow = { ...pendingRow(action, card, about, deps), thirdParty: true, link }
  return { plan: 'call', call: 'PROVISION', provisionId: id, isRepeat: false, newRow }
}

function provisionedOf({ provisionId: id, tokenId, reference }: StoredScheme): MadeToken {
  return { provisionId: id, tokenId, token: reference ?? '' }
}
