// Progress of batches as server-sent events. One question a second to the store serves every stream of the process, and
// none holds a connection to it. A reader that is slow misses states between, never the last.

import { Readable } from 'node:stream'
import { every } from '../../../src/recurring.ts'
import * as intake from '../../../src/store/batch/intake.ts'
import type { GatewayDeps } from '../deps.ts'
import { type BatchStatus, statusOf } from './status.ts'

export interface Events {
  /** Undefined where there are as many streams as are allowed, of this client or in all. */
  open(first: intake.Intake): Readable | undefined
  /** Ends every stream. */
  close(): void
}

const STREAMS_MAX = 200
const STREAMS_OF_ONE_MAX = 50
const PROGRESS_MS = 1_000
/** Proxies close what is silent for longer than half a minute or so. */
const HEARTBEAT_MS = 15_000

interface Watcher {
  intakeNo: number
  stream: Readable
  sent: string
  sentAt: number
  /** The stream took no more; what comes meanwhile is passed over. */
  full: boolean
}

export function openEvents({ store, clock, log }: Pick<GatewayDeps, 'store' | 'clock' | 'log'>): Events {
  const watched = new Map<number, Set<Watcher>>()
  /** Client ids, one for each stream. */
  const streams: string[] = []
  let stop: (() => Promise<void>) | undefined
  let closed = false

  function push(watcher: Watcher, text: string): void {
    watcher.sentAt = clock()
    watcher.full = !watcher.stream.push(text)
  }
  function sendStatus(watcher: Watcher, status: BatchStatus): void {
    const data = JSON.stringify(status)
    if (status.finished) {
      if (watcher.sent !== data) push(watcher, eventOf('progress', status, data))
      push(watcher, eventOf('finished', status, data))
      watcher.stream.push(null)
      // It may be read later still, but there is no more to be told.
      forget(watcher)
    } else if (!watcher.full && watcher.sent !== data) push(watcher, eventOf('progress', status, data))
    else if (!watcher.full && clock() - watcher.sentAt >= HEARTBEAT_MS) push(watcher, ': still there\n\n')
    watcher.sent = data
  }
  async function readProgress(): Promise<void> {
    const progress = await intake.findByNumbers(store, [...watched.keys()])
    if (closed) return
    for (const found of progress) {
      for (const watcher of watched.get(found.intakeNo) ?? []) sendStatus(watcher, statusOf(found, false))
    }
  }
  function forget(watcher: Watcher): void {
    const watchers = watched.get(watcher.intakeNo)
    if (watchers?.delete(watcher) && watchers.size === 0) watched.delete(watcher.intakeNo)
    if (watched.size > 0) return
    void stop?.()
    stop = undefined
  }
  return {
    open(first) {
      const { intakeNo, clientId } = first
      const own = streams.filter(id => id === clientId).length
      if (streams.length >= STREAMS_MAX || own >= STREAMS_OF_ONE_MAX || closed) return undefined
      const stream = new Readable({
        read: () => {
          watcher.full = false
        },
      })
      const watcher: Watcher = { intakeNo, stream, sent: '', sentAt: clock(), full: false }
      stream.once('close', () => {
        forget(watcher)
        streams.splice(streams.indexOf(clientId), 1)
      })
      streams.push(clientId)
      watched.set(intakeNo, (watched.get(intakeNo) ?? new Set()).add(watcher))
      sendStatus(watcher, statusOf(first, false))
      if (watched.size > 0) stop ??= every(PROGRESS_MS, readProgress, { log })
      return stream
    },
    close() {
      closed = true
      void stop?.()
      for (const watchers of [...watched.values()]) for (const { stream } of watchers) stream.push(null)
    },
  }
}

/** Chunks done are the event's id: whoever connects again is told the state of that moment, whatever it saw before. */
function eventOf(name: 'progress' | 'finished', status: BatchStatus, data: string): string {
  return `event: ${name}\nid: ${status.chunks_done}\ndata: ${data}\n\n`
}
