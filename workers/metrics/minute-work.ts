// What this process did in each of its last minutes, by kind, for its heartbeat: rows of chunks and single jobs, and how long
// they waited. The scheduler adds the processes up. A job that runs in a cell isn't counted, because a cell has no heartbeat.
import type { Catalogue } from '../../src/job/catalogue.ts'
import { type Counts, tookEffect } from '../../src/job/outcome.ts'
import { WAIT_BOUNDS_MS, WORK_MINUTES, type WorkMinute } from '../../src/store/watch/work-minutes.ts'

const MINUTE_MS = 60_000
/** What an attempt's end counts as, if its job is no chunk. Other ends decide nothing. */
const ENDS: Readonly<Record<string, 'done' | 'refused' | 'failed'>> = {
  SUCCEEDED: 'done',
  FAILED: 'refused',
  FAULT: 'failed',
}

export interface MinuteWork {
  /** An attempt ended. The rows of a chunk are counted by `noteRows`; a chunk that failed for good counts as one. */
  noteEnd(kind: string, outcome: string): void
  /** A chunk was written. */
  noteRows(kind: string, counts: Counts): void
  /** An attempt began this long after its job was made, in ms. */
  noteWait(kind: string, ms: number): void
  /** The minutes that a heartbeat holds, this one included. */
  told(): WorkMinute[]
}

/** `now`: ms since the epoch. */
export function openMinuteWork(catalogue: Catalogue, now = () => Date.now()): MinuteWork {
  const minutes = new Map<number, Map<string, WorkMinute>>()
  const workOf = (kind: string): WorkMinute => {
    const minute = Math.floor(now() / MINUTE_MS)
    const kinds = minutes.get(minute) ?? new Map<string, WorkMinute>()
    const none = { minute, kind, done: 0, refused: 0, failed: 0, waits: [...WAIT_BOUNDS_MS, 0].map(() => 0) }
    const work = kinds.get(kind) ?? none
    minutes.set(minute, kinds.set(kind, work))
    return work
  }
  return {
    noteEnd(kind, outcome) {
      const as = ENDS[outcome]
      if (as !== undefined && (as === 'failed' || catalogue.entry(kind).recordsIn === null)) workOf(kind)[as] += 1
    },
    noteRows(kind, counts) {
      const work = workOf(kind)
      for (const [outcome, rows] of Object.entries(counts)) {
        if (tookEffect(outcome)) work.done += rows
        else if (outcome === 'FAILED') work.failed += rows
        else work.refused += rows
      }
    },
    noteWait(kind, ms) {
      const { waits } = workOf(kind)
      const found = WAIT_BOUNDS_MS.findIndex(bound => ms <= bound)
      const at = found < 0 ? WAIT_BOUNDS_MS.length : found
      waits[at] = (waits[at] ?? 0) + 1
    },
    told() {
      const since = Math.floor((now() - WORK_MINUTES.toldMs) / MINUTE_MS)
      for (const minute of minutes.keys()) if (minute <= since) minutes.delete(minute)
      return [...minutes.values()].flatMap(kinds => catalogue.kinds.flatMap(kind => kinds.get(kind) ?? []))
    },
  }
}
