// Reads what the page of one batch shows, for one sight: the same for the page and for the streams of those who watch it.

import type { BatchState } from '../../../src/job/choices.ts'
import { describeError } from '../../../src/logger.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as seenRows from '../../../src/store/console/audit/rows.ts'
import type { SeenSample } from '../../../src/store/console/batch-samples.ts'
import * as seenSamples from '../../../src/store/console/batch-samples.ts'
import * as seen from '../../../src/store/console/batches.ts'
import * as seenNow from '../../../src/store/console/now.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { entitiesOf, type Sight, sightOf } from '../../../src/store/sight.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type InTurn, openTurns } from '../failed/turns.ts'
import { isSeenGoing } from '../pulse.ts'
import { NOTES_SHOWN } from './notes.ts'
import { whyStalledOf } from './stall.ts'

export interface BatchFacts {
  batch: seen.SeenBatch
  state: BatchState
  pulse: seenNow.Pulse
  /** Whether it is seen that it goes on. */
  isSeen: boolean
  /** Rows per second; undefined: the batch isn't going on, or its speed isn't known. */
  speed: number | undefined
  samples: readonly SeenSample[]
  /** The newest acts on it, one more than are shown; undefined: they can't be found now. */
  acts: readonly seenRows.SeenAuditRow[] | undefined
  /** Why it is stalled; undefined: it isn't, or that could not be found. */
  stall: string | undefined
  /** When all this was read, ms since the epoch. */
  now: number
}

type Viewer = Pick<LiveSession, 'personId' | 'entities'>

export interface FactsReader {
  /** Of a page. It waits for the cause of a stall. */
  read(viewer: Viewer, batchNo: string): Promise<BatchFacts | undefined>
  /**
   * Of a stream, every two seconds: the cause of a stall is the last one that was found, and it is looked for again after
   * `STALL_MS`, beside this.
   */
  readAgain(viewer: Viewer, batchNo: string): Promise<BatchFacts | undefined>
}

/** The batch of a path, if it is the session's person's to see. */
export async function batchOf(
  { store }: Pick<ConsoleDeps, 'store'>,
  session: Pick<LiveSession, 'entities'>,
  no: string,
): Promise<seen.SeenBatch | undefined> {
  return /^\d{1,15}$/.test(no) ? seen.find(sightOf(session.entities), store, Number(no)) : undefined
}

/** Names the batch and the sight: whoever has the same sees the same of it. */
export function viewOf(batchNo: number, sight: Sight): string {
  return `batch-${batchNo} ${entitiesOf(sight)?.toSorted().join(' ') ?? 'all'}`
}

/** Failed chunks are whole chunks, so one page at a time looks for them. */
const TURNS = { most: 8, mostOfOne: 2 }

type Deps = Pick<ConsoleDeps, 'store' | 'queues' | 'clock' | 'log'>

/** Opens the reader of one process. Causes of stalls are kept for some time. */
export function openFacts(deps: Deps): FactsReader {
  const inTurn = openTurns(TURNS)
  const stalls = openStalls(deps, inTurn)
  const readWith =
    (why: (viewer: Viewer, batch: seen.SeenBatch) => Promise<string | undefined>): FactsReader['read'] =>
    async (viewer, batchNo) => {
      const sight = sightOf(viewer.entities)
      const [batch, pulse] = await Promise.all([batchOf(deps, viewer, batchNo), seenNow.findPulse(sight, deps.store)])
      if (!batch) return undefined
      const now = deps.clock()
      const state = stateOf(batch, now)
      const isSeen = isSeenGoing(batch, pulse, now)
      const [speed, samples, acts, stall] = await Promise.all([
        isSeen ? speedOf(deps, sight, { batch, state, now }) : undefined,
        seenSamples.list(sight, deps.store, batch.batchNo),
        actsOf(deps, sight, batch),
        state === 'STALLED' ? why(viewer, batch) : undefined,
      ])
      return { batch, state, pulse, isSeen, speed, samples, acts, stall, now }
    }
  return { read: readWith(stalls.find), readAgain: readWith(stalls.recall) }
}

/** After so long the cause of a stall that is watched is looked for again: that may read whole chunks. In ms. */
const STALL_MS = 30_000

interface Cause {
  at: number
  /** Undefined: it was not found. */
  why: string | undefined
}

/** The causes that were found last, by the view. */
function openStalls(deps: Deps, inTurn: InTurn) {
  const known = new Map<string, Cause>()
  const last = (view: string): Cause | undefined => {
    for (const [key, { at }] of known) if (deps.clock() - at > 2 * STALL_MS) known.delete(key)
    return known.get(view)
  }
  const find = async (viewer: Viewer, batch: seen.SeenBatch): Promise<string | undefined> => {
    const view = viewOf(batch.batchNo, sightOf(viewer.entities))
    last(view)
    const why = await whyStalledOf(deps, viewer, batch, inTurn)
    known.set(view, { at: deps.clock(), why })
    return why
  }
  return {
    find,
    async recall({ entities }: Viewer, batch: seen.SeenBatch): Promise<string | undefined> {
      const view = viewOf(batch.batchNo, sightOf(entities))
      const cause = last(view)
      if (cause && deps.clock() - cause.at <= STALL_MS) return cause.why
      // While that look is under way nobody begins the same. It is nobody's turn in particular: the view's.
      known.set(view, { at: deps.clock(), why: cause?.why })
      void find({ personId: view, entities }, batch)
      return cause?.why
    },
  }
}

/** Undefined as before `schema upgrade` has built their index. */
async function actsOf(
  { store, log }: Deps,
  sight: Sight,
  { clientId, batchId }: seen.SeenBatch,
): Promise<seenRows.SeenAuditRow[] | undefined> {
  return seenRows.listOfBatch(sight, store, { clientId, batchId, limit: NOTES_SHOWN + 1 }).catch(error => {
    log.warn({ error: describeError(error) }, 'the acts on a batch were not found')
    return undefined
  })
}

/** A batch without activity for longer has no speed to show, in ms. */
const ACTIVE_MS = 120_000

/** Rows per second of a batch that has rows under way. The page shows nothing of it where it can't be found in time. */
async function speedOf(
  { store, log }: Deps,
  sight: Sight,
  { batch, state, now }: Pick<BatchFacts, 'batch' | 'state' | 'now'>,
): Promise<number | undefined> {
  if ((state !== 'RUNNING' && state !== 'OPEN') || now - batch.activeAt > ACTIVE_MS) return undefined
  const { batchNo, createdAt } = batch
  return seen.findSpeed(sight, store, { batchNo, createdAt, now }).catch(error => {
    log.warn({ error: describeError(error) }, 'the speed of a batch was not found')
    return undefined
  })
}
