// Outbox → results queue. What was just committed is published at once from memory; a sweep publishes what a crash or
// a full queue left, from the store. Publishing never fails a job: what can't be told now waits in the outbox.
import type { Clock } from '../src/clock.ts'
import { resultsQueue } from '../src/job/catalogue.ts'
import { type InstallationKey, sealResult } from '../src/job/result.ts'
import { describeError, type Logger } from '../src/log.ts'
import type { Metrics } from '../src/metrics.ts'
import type { Queues } from '../src/queue/engine.ts'
import * as outbox from '../src/store/outbox.ts'
import type { Store } from '../src/store/pool.ts'

/** Bounds of one results queue; what is beyond waits in the store. */
export const RESULTS = { unreadMax: 1000, unreadBytesMax: 64 * 1024 * 1024, heldBackMax: 10_000 } as const

export interface Message {
  outboxId: number
  clientId: string
  replyTo: string | null
  resultId: string
  revision: number
  body: string
}

export interface Announcer {
  /** Publishes if there is room; resolves either way. */
  publish(message: Message): Promise<void>
  /** Publishes what the outbox still holds and is older than `olderThanMs`. Returns how many. */
  sweep(olderThanMs: number): Promise<number>
  /** Whether so much waits for this client that its batches must wait too. */
  isHeldBack(clientId: string): Promise<boolean>
  close(): Promise<void>
}

export interface AnnouncerOptions {
  store: Store
  queues: Queues
  key: InstallationKey
  clock: Clock
  metrics: Metrics
  log: Logger
  /** The text of a row that has none of its own. */
  bodyOf: (row: outbox.OutboxRow) => Promise<string | undefined>
}

interface Room {
  unread: number
  checkedAt: number
  bytesOfOne: number
}

const ROOM_MS = 500
const SENT_FLUSH_MS = 25
const HELD_BACK_MS = 2_000
const SWEEP_ROWS = 200

export function openAnnouncer({ store, queues, key, clock, metrics, log, bodyOf }: AnnouncerOptions): Announcer {
  const rooms = new Map<string, Room>()
  const heldBack = new Map<string, { held: boolean; checkedAt: number }>()
  const sent: number[] = []
  let flushing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  /** Whether one more result fits; asks the queue at most every half second and counts along meanwhile. */
  async function hasRoom(queue: string, bytes: number): Promise<boolean> {
    let room = rooms.get(queue)
    if (!room || clock() - room.checkedAt > ROOM_MS) {
      const { waiting, active } = await queues.depth(queue)
      room = { unread: waiting + active, checkedAt: clock(), bytesOfOne: room?.bytesOfOne ?? bytes }
      if (rooms.size > 1000) rooms.clear()
      rooms.set(queue, room)
    }
    room.bytesOfOne = Math.max(bytes, room.bytesOfOne * 0.99)
    if (room.unread >= RESULTS.unreadMax || room.unread * room.bytesOfOne >= RESULTS.unreadBytesMax) return false
    room.unread += 1
    return true
  }

  async function send(message: Message): Promise<boolean> {
    const queue = resultsQueue(message.clientId, message.replyTo)
    if (!(await hasRoom(queue, message.body.length))) return false
    const { clientId, resultId, revision } = message
    const data = await sealResult(message.body, { clientId, resultId, revision }, key)
    await queues.add(queue, { id: `r_${resultId}`, data, redeliver: true })
    metrics.published.inc()
    return true
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const ids = sent.splice(0)
    // Rows that stay NEW are told again, which the result's id makes harmless.
    await outbox.markSent(store, ids).catch(error => log.warn({ err: error }, 'outbox rows were told but not marked'))
  }

  function noteSent(outboxId: number): void {
    sent.push(outboxId)
    timer ??= setTimeout(() => {
      flushing = flush()
    }, SENT_FLUSH_MS)
  }

  async function publish(message: Message): Promise<void> {
    try {
      if (await send(message)) noteSent(message.outboxId)
    } catch (error) {
      log.warn(
        { result: message.resultId, error: describeError(error) },
        'a result could not be published; it waits in the outbox',
      )
    }
  }

  async function sweepQueue(clientId: string, replyTo: string | null, before: number): Promise<number> {
    return store.transaction(async db => {
      const rows = await outbox.take(db, clientId, replyTo, before, SWEEP_ROWS)
      const told: number[] = []
      for (const row of rows) {
        const body = row.body ?? (await bodyOf(row))
        if (body !== undefined && !(await send({ ...row, body }))) break
        told.push(row.outboxId)
      }
      await outbox.markSent(db, told)
      return told.length
    })
  }

  return {
    publish,
    async sweep(olderThanMs) {
      const before = clock() - olderThanMs
      const pending = await outbox.pendingQueues(store)
      const oldest = Math.min(...pending.map(queue => queue.oldest))
      metrics.outboxOldest.set(pending.length === 0 ? 0 : (clock() - oldest) / 1000)
      metrics.outboxRows.set(pending.reduce((sum, queue) => sum + queue.rows, 0))
      let told = 0
      for (const queue of pending) {
        if (queue.oldest < before) told += await sweepQueue(queue.clientId, queue.replyTo, before)
      }
      return told
    },
    async isHeldBack(clientId) {
      const known = heldBack.get(clientId)
      if (known && clock() - known.checkedAt < HELD_BACK_MS) return known.held
      const held = (await outbox.pendingOf(store, clientId, RESULTS.heldBackMax)) >= RESULTS.heldBackMax
      if (heldBack.size > 1000) heldBack.clear()
      heldBack.set(clientId, { held, checkedAt: clock() })
      return held
    },
    async close() {
      await flushing
      await flush()
    },
  }
}
