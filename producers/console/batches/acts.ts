// What people may do to a batch, as words: which roles may, in which states it is possible, and what will happen. A worker
// decides it again by its own rules; these words only keep a page from offering what would be refused.
import type { BatchState } from '../../../src/store/batch/batch-state.ts'
import type { SeenBatch } from '../../../src/store/console/batches.ts'
import type { ActWords } from '../acts/subject.ts'
import { rows } from '../figures.ts'

interface BatchAct extends ActWords {
  states: readonly BatchState[]
  /** What will happen, as sentences. */
  effect: (left: string) => string
}

const OPEN: readonly BatchState[] = ['RUNNING', 'OPEN', 'STALLED', 'ABANDONED']

export const BATCH_ACTS = {
  pause: {
    act: 'batch.pause',
    verb: 'Pause',
    roles: ['OPERATOR', 'ADMIN'],
    isFinal: false,
    states: OPEN,
    effect: left => `Workers stop at this batch: ${left} wait until somebody resumes it. Rows that are done stay done.`,
  },
  resume: {
    act: 'batch.resume',
    verb: 'Resume',
    roles: ['OPERATOR', 'ADMIN'],
    isFinal: false,
    states: ['PAUSED'],
    effect: left => `Workers go on with this batch: ${left} are worked from now on.`,
  },
  cancel: {
    act: 'batch.cancel',
    verb: 'Cancel',
    roles: ['ADMIN'],
    isFinal: true,
    states: [...OPEN, 'PAUSED'],
    effect: left => `${left} will never be worked. Rows that are done stay done. Nobody can take this back.`,
  },
} as const satisfies Record<string, BatchAct>

export type BatchActName = keyof typeof BATCH_ACTS

export function isBatchAct(name: string): name is BatchActName {
  return Object.hasOwn(BATCH_ACTS, name)
}

export function possibleIn(name: BatchActName, batch: SeenBatch, state: BatchState): boolean {
  // A batch at its sender's limit goes on when its sender does.
  if (name === 'resume' && batch.pausedAt === null) return false
  return (BATCH_ACTS[name].states as readonly BatchState[]).includes(state)
}

/** The rows that aren't done, in words: `41,200 rows`. */
export function leftOf({ extentRows, rowsDone }: Pick<SeenBatch, 'extentRows' | 'rowsDone'>): string {
  return extentRows === null ? 'all further rows' : rows(Math.max(0, extentRows - rowsDone))
}
