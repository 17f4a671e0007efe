// What the line asks about the cards of a job. It knows none itself: the composition hands the answers down
// (../card/questions.ts).
import type { Refusal } from '../../src/errors.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import type { StoredHead, ToldAnswer } from '../answer/result-text.ts'
import type { Deps } from '../deps.ts'
import type { RequestContent, Work } from '../work.ts'
import type { Handlers } from './handlers.ts'

/** Where a chunk's content is taken from its records. */
export type ReadContent = (() => RequestContent) | undefined

export interface CardQuestions {
  /** The job with names (jti, reference) that may be stored and answered: its own card's number is masked in them. */
  withoutOwnNumber<R>(work: Work<R>, deps: Deps): Promise<Work<R>>
  /** Whether the names of the job hold its own card's number. */
  isNamedAfterItsCard(work: Work<unknown>, deps: Deps): Promise<boolean>
  /**
   * The hash of what the job says, its cards opened; undefined if none was opened while it was worked. A card that can't be
   * opened counts byte for byte.
   */
  contentDigest(work: Work<unknown>, read: ReadContent, version: number, deps: Deps): Promise<Buffer | undefined>
  /** Whether the receipt belongs to a request that says the same. Refuses if too many cards were tried. */
  isSameContent(stored: Receipt, work: Work<unknown>, read: ReadContent, deps: Deps): Promise<boolean | Refusal>
  /** The refusal of a repeat whose stored answer tells of another entity, or whose request names what is another's. */
  storedAnswerRefusal(
    work: Pick<Work<unknown>, 'claims' | 'client'>,
    stored: Pick<Receipt, 'tokenId' | 'entityId'>,
    deps: Deps,
  ): Promise<Refusal | undefined>
  /** The content of the stored answer, as its tokens are now. */
  storedAnswer(receipt: Receipt, deps: Deps & { handlers: Handlers }): Promise<{ head: StoredHead; answer: ToldAnswer }>
}
