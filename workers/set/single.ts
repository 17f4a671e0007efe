// Says which decided single jobs may be written in a set, and which of them may not be in the same set. write-set.ts
// writes the set.
import type { NewReceipt, Receipt, Written } from '../../src/store/job/receipts.ts'
import type { TraceContext } from '../../src/trace/context.ts'
import type { Message } from '../answer/deliver.ts'
import type { Effect } from '../effect/effect.ts'

export interface Single {
  receipt: NewReceipt
  effect: Effect
  /** The job's span. */
  trace: TraceContext | undefined
  /** Writes the job in a transaction of its own. */
  alone(): Promise<WrittenSingle>
}

export interface WrittenSingle extends Written {
  row: Receipt
  /** Set if the result is signed already. */
  message?: Message
}

export interface Sets {
  /**
   * Writes effect, receipt and outbox row, in one transaction with those of other jobs or alone. Throws `LostRace` if
   * another transaction has changed what the job was decided on.
   */
  write(single: Single): Promise<WrittenSingle>
}

/** True for the lists that a set may write: those about the job's own token and card, its misses and its sequence. */
const IN_SETS = {
  inserts: true,
  updates: true,
  touches: true,
  beforeImages: true,
  misses: true,
  sequences: true,
  // Other transactions (providers' answers, owners, the deletion of a token) write these rows in other orders, so a set
  // could deadlock with them.
  erasedImages: false,
  newReferences: false,
  changedReferences: false,
  networks: false,
} as const satisfies Record<keyof Effect, boolean>

export function mayJoin(effect: Effect): boolean {
  const { inserts = [], updates = [], touches = [], sequences = [] } = effect
  const lists = Object.entries(effect) as [keyof Effect, readonly unknown[] | undefined][]
  const isPlain = lists.every(([name, list]) => IN_SETS[name] || list === undefined || list.length === 0)
  // The insert of a new token is left out if another job has made a token for the card. So a job that inserts may write
  // nothing else to tokens.
  const others = updates.length + touches.length + sequences.length
  const isOne = inserts.length === 0 || (inserts.length === 1 && others === 0)
  // A set inserts the cards of new tokens before it locks rows of stored tokens. A job that changes the fingerprints of
  // a token locks in the other order: the token's row before its cards.
  return isPlain && isOne && updates.every(({ cards, storedCards }) => cards === storedCards)
}

/**
 * Two jobs with a common key never go in one set: they have the same receipt or token, or insert a token of the same
 * card.
 */
export function keysOf({ receipt, effect }: Single): string[] {
  const { inserts = [] } = effect
  return [receipt.receiptId, ...tokensOf(effect), ...inserts.flatMap(({ cards }) => cards)]
}

/** The stored tokens that the effect changes or touches, or on which it stores a sequence. */
export function tokensOf({ updates = [], touches = [], sequences = [] }: Effect): string[] {
  return [...new Set([...updates, ...touches, ...sequences].map(({ tokenId }) => tokenId))]
}
