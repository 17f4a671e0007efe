// Publishes the outbox on results queues. A result that was just committed is published at once from memory, if its
// queue has room. A sweep publishes from the store the rows that a crash or a full queue has left. Publishing never
// fails a job: what can't be published waits in the outbox.
import { openCache } from '../../src/cache.ts'
import type { Clock } from '../../src/clock.ts'
import { toFault } from '../../src/errors.ts'
import type { Signing } from '../../src/job/answer/result.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { describeError, type Logger } from '../../src/logger.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { levelOfFailure } from '../../src/server-error.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import type { Store } from '../../src/store/pool.ts'
import { readTraceparent, type TraceContext, traceparentOf } from '../../src/trace/context.ts'
import type { Span, Tracer } from '../../src/trace/tracer.ts'
import type { WorkerMetrics } from '../metrics/metrics.ts'
import { type Message, openDeliver, seal } from './deliver.ts'
import type { ResultText } from './result-text.ts'

/** The limits of one results queue, in deliveries and bytes; further results wait in the store. */
export const RESULTS = { unreadMax: 1000, unreadBytesMax: 64 * 1024 * 1024 } as const

/** The job to which the result belongs. */
export interface PublishedFor {
  log: Logger
  span?: Span | undefined
}

export interface Announcer {
  /** Signs a result before it is published. */
  seal(message: Message): Message
  /**
   * Publishes the result if its queue has room. Resolves in any case: a result that isn't published waits in the
   * outbox. `job`: the job to which the result belongs, for log and trace.
   */
  publish(message: Message, job?: PublishedFor): Promise<void>
  /**
   * Publishes rows of the outbox that are older than `olderThanMs`, as far as their queues have room. Returns how many.
   */
  sweep(olderThanMs: number): Promise<number>
  /** Backpressure: whether so many results wait on that queue of the client that its chunks are delayed. */
  isHeldBack(clientId: string, replyTo: string | null): Promise<boolean>
  close(): Promise<void>
}

/**
 * What is told of an outbox row. `gone`: it points to a receipt that retention has erased. `unproved`: tokenmill didn't write the row,
 * or its receipt, as it is.
 */
export type RowBody = Pick<ResultText, 'body' | 'inColumns'> | 'gone' | 'unproved'

export interface AnnouncerOptions {
  store: Store
  queues: Queues
  signing: () => Signing
  clock: Clock
  metrics: Pick<WorkerMetrics, 'published' | 'deliveries'>
  log: Logger
  tracer?: Tracer | undefined
  /** What is told of a row, if tokenmill wrote it. */
  bodyOf: (row: outbox.OutboxRow) => Promise<RowBody>
}

/** This process's measurement of one results queue. */
interface Room {
  /** How many deliveries this process may put on the queue before it measures again. */
  left: number
  isFull: boolean
  measuredAt: number
  measuring: Promise<void> | undefined
  /** Results that are being put on the queue: a measurement may not count them yet. */
  underway: number
  bytesOfOne: number
}

const ROOM_MS = 500
/**
 * A measurement allows this share of the free places, so that up to sixteen processes may measure at the same time
 * without publishing too much.
 */
const SHARE = 1 / 16
const ROOMS_MAX = 1_000
const SENT_FLUSH_MS = 25
const HELD_BACK_MS = 2_000
const SWEEP_ROWS = 200
/**
 * How many waiting results are read before the first of them is sent. If the queue is full, the others would be read in
 * vain.
 */
const SWEEP_AT_ONCE = 20
/** The most links of one span. */
const LINKS_MAX = 128

export function openAnnouncer(options: AnnouncerOptions): Announcer {
  const { store, queues, signing, clock, metrics, log: ownLog, tracer, bodyOf } = options
  const rooms = openCache<Room>({ max: ROOMS_MAX })
  const heldBack = openCache<boolean>({ max: ROOMS_MAX, lifetime: { ms: HELD_BACK_MS, clock } })
  const deliver = openDeliver(queues, signing)
  const sent: number[] = []
  let flushing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  function roomOf(queue: string): Room {
    const known = rooms.get(queue)
    if (known) return known
    const room: Room = { left: 0, isFull: false, measuredAt: 0, measuring: undefined, underway: 0, bytesOfOne: 1 }
    rooms.set(queue, room)
    return room
  }

  async function measure(queue: string, room: Room): Promise<void> {
    // A result that a failing consumer delayed is unread, too.
    const { waiting, active, delayed } = await queues.depth(queue)
    const most = Math.min(RESULTS.unreadMax, Math.floor(RESULTS.unreadBytesMax / room.bytesOfOne))
    room.left = Math.max(0, Math.floor((most - waiting - active - delayed - room.underway) * SHARE))
    room.isFull = room.left === 0
    room.measuredAt = clock()
  }

  /** Reserves the place of one more result; false if there is none. */
  async function takePlace(queue: string, room: Room, bytes: number): Promise<boolean> {
    room.bytesOfOne = Math.max(bytes, room.bytesOfOne * 0.99)
    for (;;) {
      if (clock() - room.measuredAt <= ROOM_MS) {
        if (room.isFull) return false
        if (room.left > 0) {
          room.left -= 1
          room.underway += 1
          return true
        }
      }
      room.measuring ??= measure(queue, room).finally(() => {
        room.measuring = undefined
      })
      await room.measuring
    }
  }

  async function send(message: Message): Promise<boolean> {
    const queue = resultsQueue(message.clientId, message.replyTo)
    const room = roomOf(queue)
    if (!(await takePlace(queue, room, message.body.length))) return false
    const { measuredAt } = room
    try {
      const { results, isFirst } = await deliver({ queue, message })
      if (isFirst) metrics.deliveries.inc({ form: results > 1 ? 'set' : 'single' })
      // A set is one delivery, so each result after the first gives its place back, unless the queue was measured anew
      // meanwhile.
      else if (room.measuredAt === measuredAt) room.left += 1
    } finally {
      room.underway -= 1
    }
    metrics.published.inc()
    return true
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const ids = sent.splice(0)
    // Rows that stay NEW are published again, which does no harm because the result's id is the same.
    const warning = 'results were published, but their outbox rows not marked'
    await outbox.markSent(store, ids).catch(error => ownLog[levelOfFailure(error)]({ err: error }, warning))
  }

  function noteSent(outboxId: number): void {
    sent.push(outboxId)
    timer ??= setTimeout(() => {
      flushing = flush()
    }, SENT_FLUSH_MS)
  }

  /** Stores the trace of a result, if it is recorded, because another process may publish the result later. */
  async function keepTrace(outboxId: number, span: Span | undefined): Promise<void> {
    if (span?.context.sampled) await outbox.setTrace(store, outboxId, traceparentOf(span.context)).catch(() => {})
  }

  async function publish(message: Message, { log, span: jobSpan }: PublishedFor): Promise<void> {
    const span = jobSpan?.child('publish', { kind: 'producer' })
    try {
      const isSent = await send(message)
      if (isSent) noteSent(message.outboxId)
      else await keepTrace(message.outboxId, jobSpan)
      span?.set({ 'job.outcome': isSent ? 'published' : 'waiting' })
      span?.end()
    } catch (error) {
      span?.end(toFault(error).code)
      await keepTrace(message.outboxId, jobSpan)
      log[levelOfFailure(error)](
        { result: message.resultId, error: describeError(error) },
        'a result could not be published; it waits in the outbox',
      )
    }
  }

  /**
   * Sends the rows together, and says of each whether it was sent. A row whose receipt retention has erased counts as
   * sent.
   */
  async function sendAll(rows: readonly outbox.OutboxRow[]): Promise<PromiseSettledResult<boolean | 'unproved'>[]> {
    const bodies: PromiseSettledResult<RowBody>[] = []
    for (const row of rows) bodies.push(...(await Promise.allSettled([bodyOf(row)])))
    return Promise.allSettled(
      rows.map(async (row, index) => {
        const read = bodies[index]
        if (read?.status === 'rejected') throw read.reason
        if (read === undefined || read.value === 'gone') return true
        return read.value === 'unproved' ? 'unproved' : send({ ...row, ...read.value })
      }),
    )
  }

  /** A row that can't be published stays as it is, and holds back no other. */
  async function sweepQueue(clientId: string, replyTo: string | null, before: number): Promise<number> {
    const queue = resultsQueue(clientId, replyTo)
    const room = roomOf(queue)
    if (clock() - room.measuredAt > ROOM_MS) await measure(queue, room)
    // A queue that nobody reads stays full: its rows aren't locked each second in vain.
    if (room.isFull) return 0
    return store.transaction(async db => {
      const rows = await outbox.take(db, clientId, replyTo, before, SWEEP_ROWS)
      const published: outbox.OutboxRow[] = []
      const unproved: outbox.OutboxRow[] = []
      const failures: unknown[] = []
      const begunAt = clock()
      for (let from = 0; from < rows.length; from += SWEEP_AT_ONCE) {
        const some = rows.slice(from, from + SWEEP_AT_ONCE)
        const ends = await sendAll(some)
        published.push(...some.filter((_, index) => endOf(ends[index]) === true))
        unproved.push(...some.filter((_, index) => endOf(ends[index]) === 'unproved'))
        const failed = ends.flatMap(end => (end.status === 'rejected' ? [end.reason] : []))
        failures.push(...failed)
        const isFull = ends.some(end => end.status === 'fulfilled' && !end.value)
        if (isFull || failed.some(error => toFault(error).code === 'queue_away')) break
      }
      try {
        await outbox.markSent(
          db,
          published.map(({ outboxId }) => outboxId),
        )
        await outbox.markUnproved(
          db,
          unproved.map(({ outboxId }) => outboxId),
        )
      } finally {
        const [failure] = failures
        traceSweep(published, begunAt, failure === undefined ? undefined : toFault(failure).code)
        if (failure !== undefined) tellWaiting(clientId, failure, failures.length)
      }
      return published.length
    })
  }

  const endOf = <End>(end: PromiseSettledResult<End> | undefined) =>
    end?.status === 'fulfilled' ? end.value : undefined

  function tellWaiting(client: string, error: unknown, results?: number): void {
    ownLog[levelOfFailure(error)](
      { client, results, error: describeError(error) },
      'results that waited could not be published',
    )
  }

  /**
   * Only a sweep that published something gets a trace: a queue that stays full, or a server that stays away, is swept
   * every second.
   */
  function traceSweep(published: readonly outbox.OutboxRow[], begunAt: number, fault?: string): void {
    if (published.length === 0) return
    const attributes = { 'results.count': published.length }
    tracer
      ?.start('publish waiting results', { kind: 'producer', links: linksOf(published), begunAt, attributes })
      .end(fault)
  }

  return {
    seal: message => ({ ...message, sealed: seal(message, signing()) }),
    publish: (message, job = { log: ownLog }) => publish(message, job),
    async sweep(olderThanMs) {
      const before = clock() - olderThanMs
      const pending = await outbox.pendingQueues(store)
      let published = 0
      for (const queue of pending) {
        if (queue.oldest >= before) continue
        // A failure with one client's queue doesn't hold back the results of other clients.
        published += await sweepQueue(queue.clientId, queue.replyTo, before).catch(error => {
          tellWaiting(queue.clientId, error)
          return 0
        })
      }
      return published
    },
    async isHeldBack(clientId, replyTo) {
      const queue = resultsQueue(clientId, replyTo)
      const known = heldBack.get(queue)
      if (known !== undefined) return known
      const held = (await outbox.pendingOf(store, clientId, replyTo, outbox.HELD_BACK_MIN)) >= outbox.HELD_BACK_MIN
      heldBack.set(queue, held)
      return held
    },
    async close() {
      await flushing
      await flush()
    },
  }
}

/** The contexts of the spans in which these results were made, if they are sampled: up to `LINKS_MAX`. */
function linksOf(rows: readonly outbox.OutboxRow[]): TraceContext[] {
  const found = rows.flatMap(({ traceparent }) => (traceparent === null ? [] : [readTraceparent(traceparent)]))
  return found
    .filter(context => context !== undefined)
    .filter(({ sampled }) => sampled)
    .slice(0, LINKS_MAX)
}
