// Reads what the page Now shows, for one sight.
import type { Catalogue } from '../../../src/job/catalogue.ts'
import type { BatchState } from '../../../src/job/choices.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as seenBatches from '../../../src/store/console/batches.ts'
import * as seen from '../../../src/store/console/now.ts'
import * as seenOpen from '../../../src/store/console/open-batches.ts'
import type { Sight } from '../../../src/store/sight.ts'
import type { ConsoleDeps } from '../deps.ts'
import { isSeenGoing } from '../pulse.ts'

export interface ShownBatch extends seenOpen.OpenBatch {
  state: BatchState
  /** Whether it is seen that it goes on. */
  isSeen: boolean
  /** Rows per second; undefined: it doesn't go on, or its speed isn't known. */
  speed: number | undefined
}

export interface ShownKind {
  kind: string
  /** Somebody waits for jobs of this kind. */
  urgent: boolean
  /** Its jobs hold rows, or are one row each: what callers ask for cards and transactions. */
  hasRows: boolean
}

/** What only people who see everything are shown. */
export interface Whole {
  kinds: ShownKind[]
  processes: seen.SeenProcess[]
  checks: seen.SeenCheck[]
  queues: seen.SeenQueue[]
  recent: seen.RecentWork[]
  waits: { kind: string; p95Ms: number | null }[]
  rows: seen.RowsMinute[]
  minutes: seen.WatchMinute[]
}

export interface Facts {
  /** When all this was read, ms since the epoch. */
  now: number
  pulse: seen.Pulse
  /** Undefined for a person who sees some entities. */
  whole: Whole | undefined
  batches: ShownBatch[]
  /** There are more open batches. */
  areMore: boolean
}

/** How many minutes the lines show. */
export const MINUTES = 60
/** How many open batches are shown. */
export const SHOWN_BATCHES = 6

export function shownKinds({ kinds, entry }: Catalogue): ShownKind[] {
  return kinds.map(kind => {
    const { recordsIn, urgent, systemOnly } = entry(kind)
    return { kind, urgent, hasRows: recordsIn !== null || (urgent && !systemOnly) }
  })
}

/** A batch without activity for longer has no speed to show, in ms. */
const ACTIVE_MS = 120_000
/** How long a speed is taken as it was: finding it reads receipts. */
const SPEED_MS = 10_000

type Speeds = Map<number, { at: number; speed: Promise<number | undefined> }>

/** Opens the reader of one process. Speeds of batches are kept for some seconds; whose they are was found by their sight. */
export function openFacts({
  store,
  clock,
  catalogue,
}: Pick<ConsoleDeps, 'store' | 'clock' | 'catalogue'>): (sight: Sight) => Promise<Facts> {
  const speeds: Speeds = new Map()
  const kinds = shownKinds(catalogue)
  return async sight => {
    const now = clock()
    const [pulse, listed, whole] = await Promise.all([
      seen.findPulse(sight, store),
      seenOpen.listOpen(sight, store, { now, limit: SHOWN_BATCHES + 1 }),
      sight.sees === 'all' ? readWhole(sight, store, kinds) : undefined,
    ])
    for (const [no, { at }] of speeds) if (now - at > SPEED_MS) speeds.delete(no)
    const batches = await Promise.all(
      listed.slice(0, SHOWN_BATCHES).map(async batch => {
        const state = stateOf(batch, now)
        const isSeen = isSeenGoing(batch, pulse, now)
        const goesOn = isSeen && (state === 'RUNNING' || state === 'OPEN') && now - batch.activeAt <= ACTIVE_MS
        return {
          ...batch,
          state,
          isSeen,
          speed: goesOn ? await speedOf(sight, { store, speeds }, batch, now) : undefined,
        }
      }),
    )
    return { now, pulse, whole, batches, areMore: listed.length > SHOWN_BATCHES }
  }
}

async function readWhole(sight: Sight, store: ConsoleDeps['store'], kinds: ShownKind[]): Promise<Whole> {
  const ofRows = kinds.filter(({ hasRows }) => hasRows).map(({ kind }) => kind)
  const [processes, checks, queues, recent, waits, rows, minutes] = await Promise.all([
    seen.listProcesses(sight, store),
    seen.listChecks(sight, store),
    seen.listQueues(sight, store),
    seen.sumRecent(sight, store),
    seen.listWaits(sight, store),
    seen.listRows(sight, store, { kinds: ofRows, minutes: MINUTES }),
    seen.listMinutes(sight, store, MINUTES),
  ])
  return { kinds, processes, checks, queues, recent, waits, rows, minutes }
}

function speedOf(
  sight: Sight,
  { store, speeds }: { store: ConsoleDeps['store']; speeds: Speeds },
  { batchNo, createdAt }: seenOpen.OpenBatch,
  now: number,
): Promise<number | undefined> {
  const known = speeds.get(batchNo)
  if (known) return known.speed
  // A speed that can't be found in time isn't shown; the rest of the page is.
  const speed = seenBatches.findSpeed(sight, store, { batchNo, createdAt, now }).catch(() => undefined)
  speeds.set(batchNo, { at: now, speed })
  return speed
}
