// Has third parties make the reuse tokens of cards, before the vault decides about those cards. Several jobs may want a
// token for the same card under the same contract: one of them calls, and the job that inserts the token's row uses the
// token.
import type { Refusal } from '../../src/errors.ts'
import { provisionId } from '../../src/job/envelope/ids.ts'
import type { ProvisionCard } from '../../src/scheme/provider.ts'
import type { Db } from '../../src/store/pool.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { ActionRules, Plan, PlanContext, ProviderAction } from './action-rules.ts'
import { pendingRow } from './pending-card.ts'
import { actionRunner } from './run-actions.ts'

/** A card that needs a third party's token. A job names each card once. */
export interface ThirdPartyAction extends ProviderAction {
  /** The fingerprint of the card under its contract. */
  fingerprint: Buffer
  /** The id of the token row that will be inserted. */
  tokenId: string
  tokenScope: string
  bin: string
  card: ProvisionCard
  /** The third party's name. */
  provider: string
}

/** A third party's token, ready for the row of `tokenId`. */
export interface Provisioned {
  provisionId: string
  tokenId: string
  token: string
}

/** `known`: another job has inserted the card's token meanwhile. */
type Granted = Provisioned | 'known'

export type ThirdPartyResult = Granted | Refusal

interface Known {
  /** Provisionings by fingerprint. */
  rows: ReadonlyMap<string, StoredScheme>
  /** Fingerprints of cards that have a token. */
  cards: ReadonlySet<string>
}

const rules: ActionRules<ThirdPartyAction, Known, Granted> = {
  subjectOf: action => ({ tokenId: action.tokenId, key: keyOf(action), bin: action.bin }),
  hold: holdRows,
  rowOf: (action, { rows }) => rows.get(keyOf(action)),
  answerOf: (action, { cards }) => (cards.has(keyOf(action)) ? 'known' : undefined),
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
  },
  // A slow third party must not occupy all places for single jobs: other creates need them.
  limits: { busyMsMax: 500, interactiveJobsMax: 4 },
}

export const runThirdPartyActions = actionRunner(rules)

async function holdRows(db: Db, actions: readonly ThirdPartyAction[]): Promise<Known> {
  const fingerprints = actions.map(({ fingerprint }) => fingerprint)
  // Provisionings are read before tokens: the job that makes a token marks its provisioning as used before it writes
  // the token. In the other order a token could be missed.
  const rows = await storedSchemes.holdByFingerprints(db, fingerprints)
  const stored = await tokens.findByFingerprints(db, fingerprints)
  return { rows: new Map(rows.map(row => [keyOf(row), row])), cards: new Set(stored.map(keyOf)) }
}

function plan(action: ThirdPartyAction, { row, job, deps }: PlanContext<Known>): Plan<Granted> {
  if (row?.state === 'ACTIVE') {
    // Another job that hasn't ended may have made this token: the first job that inserts the token's row uses it.
    const intent = { done: 'PROVISION', provisionId: row.provisionId } as const
    return { plan: 'answered', result: provisionedOf(row), intent }
  }
  if (row) return { plan: 'call', call: 'PROVISION', provisionId: row.provisionId, isRepeat: row.asked !== null }
  const { tokenId, provider, card, fingerprint } = action
  const id = provisionId(job.receiptId, tokenId, 0)
  const about = { provisionId: id, clientId: job.clientId, provider, background: false }
  const newRow = { ...pendingRow(action, card, about, deps), thirdParty: true, fingerprint }
  return { plan: 'call', call: 'PROVISION', provisionId: id, isRepeat: false, newRow }
}

function provisionedOf({ provisionId: id, tokenId, reference }: StoredScheme): Provisioned {
  return { provisionId: id, tokenId, token: reference ?? '' }
}

function keyOf({ fingerprint }: { fingerprint: Buffer | null }): string {
  return fingerprint?.toString('latin1') ?? ''
}
