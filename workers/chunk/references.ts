// References of a chunk are stored and answered: none may look like a card of any record of the chunk. A reference that
// looks like its own record's card is refused when the record is read (chunk.ts) or its card is opened; here all are
// compared at once.
import { refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import type { PanLookalikes } from '../../src/token/pan-lookalike.ts'
import { rejected } from './fold.ts'

interface Referring {
  line: number
  reference: string | undefined
}

/** `cards`: all cards of the chunk; undefined where no reference looks like a card. */
export function refuseCardLikeReferences<P extends Referring>(
  { known, prepared }: { known: readonly RecordOutcome[]; prepared: readonly P[] },
  cards: PanLookalikes | undefined,
): { known: RecordOutcome[]; prepared: P[] } {
  const isLike = ({ reference }: Referring) => reference !== undefined && cards?.isIn(reference) === true
  const refused = (record: Referring) => rejected(record, refuse('reference_pan', 'body.reference'))
  // A record that is cancelled or failed keeps its outcome, so that it can be worked later: only its reference goes.
  const judged = (record: RecordOutcome) =>
    record.outcome === 'REJECTED' ? refused(record) : isUnworked(record) ? { ...record, reference: undefined } : record
  return {
    known: [
      ...known.map(record => (isLike(record) ? judged(record) : record)),
      ...prepared.filter(isLike).map(refused),
    ],
    prepared: prepared.filter(record => !isLike(record)),
  }
}

function isUnworked({ outcome }: RecordOutcome): boolean {
  return outcome === 'CANCELLED' || outcome === 'FAILED'
}
