// References of a chunk are kept and told: none may look like a card of any record of the chunk. What a record's own card
// forbids is found when the record is read (chunk.ts), or when its card is opened; here it is asked of all at once.
import { refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import type { PanLookalikes } from '../../src/token/pan-lookalike.ts'
import { rejected } from './fold.ts'

interface Referring {
  line: number
  reference: string | undefined
}

/** `cards`: those of the chunk, opened ones too; undefined where no reference could be one. */
export function refuseLikeCards<P extends Referring>(
  { settled, prepared }: { settled: readonly RecordOutcome[]; prepared: readonly P[] },
  cards: PanLookalikes | undefined,
): { settled: RecordOutcome[]; prepared: P[] } {
  const isLike = ({ reference }: Referring) => reference !== undefined && cards?.isIn(reference) === true
  const refused = (record: Referring) => rejected(record, refuse('reference_pan', 'body.reference'))
  // What is cancelled, or fails alone, keeps its outcome, so that it can be worked later: only its reference goes.
  const judged = (record: RecordOutcome) =>
    record.outcome === 'REJECTED' ? refused(record) : isUnworked(record) ? { ...record, reference: undefined } : record
  return {
    settled: [
      ...settled.map(record => (isLike(record) ? judged(record) : record)),
      ...prepared.filter(isLike).map(refused),
    ],
    prepared: prepared.filter(record => !isLike(record)),
  }
}

function isUnworked({ outcome }: RecordOutcome): boolean {
  return outcome === 'CANCELLED' || outcome === 'FAILED'
}
