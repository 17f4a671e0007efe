// What the core asks of card networks and third parties, and what it is answered where a product has none. The feature
// answers in provider/networks.ts. A worker process composes one or the other and hands it down in `Deps`.
import { type Refusal, refuse } from '../src/errors.ts'
import type { Secret } from '../src/secret.ts'
import type { Scope } from '../src/store/access/scopes.ts'
import type { NewReceipt, Receipt, Written } from '../src/store/job/receipts.ts'
import type { Db } from '../src/store/pool.ts'
import type { StoredToken } from '../src/store/token/tokens.ts'
import type { CardFacts } from '../src/token/decide.ts'
import type { SchemeAction, SchemeRow, ShownScheme } from '../src/token/scheme.ts'
import type { TokenRow } from '../src/token/token.ts'
import type { NetworkEffect, NetworkEffects } from './effect/effect.ts'

/** `D`: the dependencies of a job (deps.ts), which the networks are among. The core passes them through. */
export interface Networks<D> {
  thirdParties: ThirdParties<D>
  schemeTokens: SchemeTokens<D>
  effects: NetworkEffects
  compensation: Compensation<D>
  leftovers: Leftovers
}

export interface JobIds {
  receiptId: string
  clientId: string
}

/** The job that asks for actions. */
export interface ActingJob extends JobIds {
  /** The job may have a receipt: that of a chunk with failed records, which is worked again. */
  mayHaveReceipt: boolean
}

export type Urgency = 'interactive' | 'bulk'

/** Third parties make reuse tokens under contracts, before the vault decides about the cards. */
export interface ThirdParties<D> {
  /** The entity's contract of this type and, if given, this name; undefined if none is set up. */
  findContract(asked: {
    type: string
    contract: string | undefined
    entityId: string
  }): { provider: string; contract: string } | undefined
  /** The ids of the tokens with these values of third parties; several may have the same value. */
  findTokens(db: Db, values: readonly string[]): Promise<string[]>
  /**
   * Has tokens made, and returns how each card ended, by line. Throws `Postponed`, or `Fault('scheme_away')`, if a card has no
   * result yet; results that exist are stored. A job names each card once.
   */
  make(
    job: ActingJob,
    cards: readonly ContractCard[],
    urgency: Urgency,
    deps: D,
  ): Promise<ReadonlyMap<number, ThirdPartyResult>>
  /** For a job that named a contract: its tokens' rows take up what was made for them. The rest is abandoned. */
  takeUp(receiptId: string, made: readonly MadeToken[]): NetworkEffect[]
}

/** The contract under which a third party makes a token. */
export interface Contract {
  type: string
  /** The third party's name. */
  provider: string
  /** The id of the range within which a card has one token of this contract. */
  place: string
  /** The expiry in `reuse_token_details`. */
  expiryMonth: number
  expiryYear: number
}

/** A card that needs a third party's token. `row`: the token's row as it would be inserted. */
export interface ContractCard extends At {
  contract: Contract
  facts: CardFacts
  pan: Secret
  row: TokenRow
}

/** The place of what is asked. */
interface At {
  /** The record's line in its chunk; 0 for a single job. */
  line: number
  /** The field that a refusal names. */
  field: string
}

/** A third party's token, ready for the row of `tokenId`. */
export interface MadeToken {
  provisionId: string
  tokenId: string
  token: string
}

/** `known`: another job has inserted the card's token meanwhile. */
export type ThirdPartyResult = MadeToken | 'known' | Refusal

/** Networks make, suspend and delete their own tokens for the cards of tokens. */
export interface SchemeTokens<D> {
  /** The scheme tokens that the records of these tokens show, by token id. */
  findShown(db: Db, tokenIds: readonly string[]): Promise<ReadonlyMap<string, SchemeRow>>
  /** The refusal of an action that can't be done for the card that a token is about to get, known before it is asked for. */
  relinkRefusal(action: SchemeAction | undefined, row: TokenRow): Refusal | undefined
  /** Does what a single job wants of a token's scheme token. A deletion is only looked at. Throws as `ThirdParties.make`. */
  act(job: JobIds, asked: Omit<AskedAction, 'line' | 'isRelinked'>, deps: D): Promise<SchemeResult>
  /** Has a scheme token made for the card that the token is about to get. Throws as `ThirdParties.make`. */
  make(job: JobIds, token: StoredToken, deps: D): Promise<MadeScheme | Refusal>
  /** Does what records of a chunk want, and returns how each ended, by line. Throws as `ThirdParties.make`. */
  actForRecords(
    job: ActingJob,
    asked: readonly AskedAction[],
    deps: D,
  ): Promise<ReadonlyMap<number, SchemeResult | MadeScheme>>
  /** New tokens get their first scheme tokens, where their scope provisions automatically. */
  provision(made: readonly NewCard[], job: JobIds, deps: D): SchemeChange
  /** A request deletes the scheme token that its token shows. */
  retire(tokenId: string, shown: ShownScheme | undefined): SchemeChange
  /** Tokens are linked to other cards: the former cards' scheme tokens end, and the new cards perhaps get some. */
  replace(db: Db, linked: readonly LinkedToken[], job: JobIds, deps: D): Promise<SchemeChange>
  /** A reversal links a token to its former card again. What a job had made with the later card is withdrawn. */
  restore(db: Db, linked: { token: StoredToken; scope: Scope }, job: JobIds, deps: D): Promise<NetworkEffect[]>
  /** Makes the calls that a change brings, right after its commit. Waits for them, but not for long; never throws. */
  settle(calls: readonly string[], deps: D): Promise<void>
}

/** What is wanted of a token's scheme token. */
export interface AskedAction {
  line: number
  action: SchemeAction
  token: StoredToken
  scope: Scope
  /** The token is about to get the card of `token`. */
  isRelinked: boolean
}

/** `same`: the scheme token already had the wanted state. */
export type SchemeResult = 'changed' | 'same' | Refusal

/** The provisioning of a token's new card, which the commit is to take over. */
export interface MadeScheme {
  provisionId: string
}

export interface NewCard {
  token: Pick<
    StoredToken,
    'tokenId' | 'tokenScope' | 'sealed' | 'brand' | 'expiryMonth' | 'expiryYear' | 'cardHolderName'
  >
  pan: Secret
  scope: Scope
}

/** A token that is now linked to another card. */
export interface LinkedToken {
  /** The token as it will be stored. */
  token: StoredToken
  /** Undefined: it is read from the store. */
  scope?: Scope
  /** What the request wants of the scheme token, or an earlier one of the same chunk for another card. */
  action: SchemeAction | undefined
  /** The provisioning that the job has had made for the new card. */
  made?: string | undefined
}

/** What a change of tokens means for their scheme tokens. */
export interface SchemeChange {
  effects: NetworkEffect[]
  /** The provisionings for which networks are called after the commit; undefined: none, and no record shows a change. */
  calls: readonly string[] | undefined
}

/** A job that ends in a refusal, or is reversed, must have its calls at providers undone. */
export interface Compensation<D> {
  /** What all attempts of a refused job have left at providers. `isOwed`: a reversal must undo some of it. */
  find(receiptId: string, db: Db): Promise<{ effects: NetworkEffect[]; isOwed: boolean }>
  /**
   * For a job that ends without a decision: writes what it owes together with its receipt. Undefined, without a receipt, if
   * it owes nothing.
   */
  endOwing(
    receiptId: string,
    receiptOf: () => Promise<NewReceipt>,
    deps: D,
  ): Promise<(Written & { receipt: Receipt }) | undefined>
  /** Queues the reversal of a job that owes compensation. Never throws. */
  queueReversal(receipt: Pick<Receipt, 'receiptId' | 'clientId' | 'envelopeDigest'>, deps: D): Promise<void>
  /** Whether the job has asked anything of providers. */
  hasAsked(receiptId: string, db: Db): Promise<boolean>
  /** Records, under the lock of the receipt, what must be undone; false if that is nothing. */
  record(db: Db, receiptId: string, now: number): Promise<boolean>
  /** Undoes what is recorded. Returns how many ms to wait before the next attempt; 0: everything is undone. */
  run(receiptId: string, deps: D): Promise<number>
}

/** What jobs have had made at providers, and no token's row has taken over. */
export interface Leftovers {
  /** The effect of a single job that ends its own. */
  effects(receiptId: string): NetworkEffect[]
  /** Ends those of a chunk, in the transaction of its receipt. */
  end(db: Db, receiptId: string, now: number): Promise<unknown>
  /** Ends those of a chunk that leaves no receipt. */
  abandon(db: Db, receiptId: string, now: number): Promise<unknown>
}

/** The field that a refusal names if a scope doesn't support scheme tokens, or a token has none. */
export const SCHEME_FIELD = 'body.scheme_token_action'

const unavailable = (): Refusal => refuse('scheme_action_unavailable', SCHEME_FIELD)
const NO_CHANGE: SchemeChange = { effects: [], calls: undefined }
const nothing = async () => undefined

/** A product without networks and third parties. */
export const noNetworks: Networks<unknown> = {
  thirdParties: {
    findContract: () => undefined,
    findTokens: async () => [],
    make: async () => new Map(),
    takeUp: () => [],
  },
  schemeTokens: {
    findShown: async () => new Map(),
    relinkRefusal: action => (action === undefined || action === 'DELETE' ? undefined : unavailable()),
    act: async () => unavailable(),
    make: async () => unavailable(),
    actForRecords: async (_, asked) => new Map(asked.map(({ line }) => [line, unavailable()])),
    provision: () => NO_CHANGE,
    retire: () => NO_CHANGE,
    replace: async () => NO_CHANGE,
    restore: async () => [],
    settle: nothing,
  },
  effects: { beforeTokens: nothing, afterTokens: nothing, last: nothing },
  compensation: {
    find: async () => ({ effects: [], isOwed: false }),
    endOwing: nothing,
    queueReversal: nothing,
    hasAsked: async () => false,
    record: async () => false,
    run: async () => 0,
  },
  leftovers: { effects: () => [], end: nothing, abandon: nothing },
}
