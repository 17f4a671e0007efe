// References of a chunk are stored and repeated in answers, so none may look like a card of any record of the chunk. A
// reference that looks like its own record's card is refused earlier, when the record is read (chunk.ts) or its card is
// decrypted; here all are compared with all cards.
import { type Refusal, refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import { someText } from '../../src/job/on-file.ts'
import { couldLookLikeCard, type PanLookalikes } from '../../src/token/pan-lookalike.ts'
import { rejected } from './fold.ts'

export interface Referring {
  line: number
  reference: string | undefined
  /** The record's data on a card on file (`on_file`): as a claim, or as it was sent. */
  claim?: object | undefined
  onFile?: object | undefined
}

/** The refusal of a record whose reference, or one of these texts about its owner, looks like one of `cards`. */
export function cardLikeRefusal(
  reference: string | undefined,
  texts: readonly string[],
  cards: PanLookalikes,
): Refusal | undefined {
  if (reference !== undefined && cards.isIn(reference)) return refuse('reference_pan', 'body.reference')
  return texts.some(text => cards.isIn(text)) ? refuse('reference_pan', 'body.on_file') : undefined
}

/**
 * Rejects records of which the reference, or a text in `on_file`, looks like one of `cards`: the cards of the chunk, or
 * undefined if no text could look like a card.
 */
export function refuseCardLikeReferences<P extends Referring>(
  { known, prepared }: { known: readonly RecordOutcome[]; prepared: readonly P[] },
  cards: PanLookalikes | undefined,
): { known: RecordOutcome[]; prepared: P[] } {
  const isLike = ({ reference }: Referring) => reference !== undefined && cards?.isIn(reference) === true
  const isClaimLike = ({ claim, onFile }: Referring) =>
    someText(claim ?? onFile, text => couldLookLikeCard(text) && cards?.isIn(text) === true)
  const refused = (record: Referring) => rejected(record, refuse('reference_pan', 'body.reference'))
  // A cancelled or failed record keeps its outcome, so that it can be worked later; only its reference is removed.
  const judged = (record: RecordOutcome) =>
    record.outcome === 'REJECTED' ? refused(record) : isUnworked(record) ? { ...record, reference: undefined } : record
  if (!cards) return { known: [...known], prepared: [...prepared] }
  const told = known.map(record => (isLike(record) ? judged(record) : record))
  const open: P[] = []
  for (const record of prepared) {
    if (isLike(record)) told.push(refused(record))
    else if (isClaimLike(record)) told.push(rejected(record, refuse('reference_pan', 'body.on_file')))
    else open.push(record)
  }
  return { known: told, prepared: open }
}

function isUnworked({ outcome }: RecordOutcome): boolean {
  return outcome === 'CANCELLED' || outcome === 'FAILED'
}
