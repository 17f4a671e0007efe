// References of a chunk are stored and answered, and so is what its records say of cards on file: nothing of it may look like
// a card of any record of the chunk. A reference that looks like its own record's card is refused when the record is read
// (chunk.ts) or its card is opened; here all are compared at once.
import { refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import { someText } from '../../src/job/on-file.ts'
import { couldLookLikeCard, type PanLookalikes } from '../../src/token/pan-lookalike.ts'
import { rejected } from './fold.ts'

interface Referring {
  line: number
  reference: string | undefined
  /** What it says of a card on file: as a claim, or as it was sent. */
  claim?: object | undefined
  onFile?: object | undefined
}

/** `cards`: all cards of the chunk; undefined where no stored text looks like a card. */
export function refuseCardLikeReferences<P extends Referring>(
  { known, prepared }: { known: readonly RecordOutcome[]; prepared: readonly P[] },
  cards: PanLookalikes | undefined,
): { known: RecordOutcome[]; prepared: P[] } {
  const isLike = ({ reference }: Referring) => reference !== undefined && cards?.isIn(reference) === true
  const isClaimLike = ({ claim, onFile }: Referring) =>
    someText(claim ?? onFile, text => couldLookLikeCard(text) && cards?.isIn(text) === true)
  const refused = (record: Referring) => rejected(record, refuse('reference_pan', 'body.reference'))
  // A record that is cancelled or failed keeps its outcome, so that it can be worked later: only its reference goes.
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
