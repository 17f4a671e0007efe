// Progress of batches as server-sent events. One query a second to the store serves all streams of the process, and no
// stream holds a connection to the store. A slow reader may miss intermediate states, but never the last one.

import { Readable } from 'node:stream'
import { every } from '../../../src/recurring.ts'
import * as intake from '../../../src/store/batch/intake.ts'
import type { BatchStatus } from '../../http/messages/batches.ts'
import type { GatewayDeps } from '../deps.ts'
import { statusOf } from './status.ts'

export interface Events {
  /** Opens a stream; undefined if this client, or the process, already has the most streams allowed. */
  open(first: intake.Intake): Readable | undefined
  /** Ends every stream. */
  close(): void
}

const STREAMS_MAX = 200
const STREAMS_OF_ONE_MAX = 50
const PROGRESS_MS = 1_000
/** Proxies close a stream that is silent for about half a minute. */
const HEARTBEAT_MS = 15_000

interface Watcher {
  intakeNo: number
  stream: Readable
  sent: string
  sentAt: number
  /** The stream's buffer is full; until it drains, new states are skipped. */
  full: boolean
}

export function openEvents({ store, clock, log }: Pick<GatewayDeps, 'store' | 'clock' | 'log'>): Events {
  const watched = new Map<number, Set<Watcher>>()
  /** The client id of each open stream. */
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
      // The stream is finished: the caller may still read what is buffered, but nothing more is added.
      forget(watcher)
    } else if (!watcher.full && watcher.sent !== data) push(watcher, eventOf('progress', status, data))
    else if (!watcher.full && clock() - watcher.sentAt >= HEARTBEAT_MS) push(watcher, ': still there\n\n')
    watcher.sent = data
  }
  async function readProgress(): Promise<void> {
    const progress = await intake.findByNumbers(store, [...watched.keys()])
    if (closed) return
    for (const found of progress) {
      for (const watcher of watched.get(found.intakeNo) ?? []) sendStatus(watcher, statusOf(found, clock()))
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
      sendStatus(watcher, statusOf(first, clock()))
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

/**
 * An event. Its id is the number of done chunks. A caller that reconnects gets the current state, whatever it received
 * before.
 */
function eventOf(name: 'progress' | 'finished', status: BatchStatus, data: string): string {
  return `event: ${name}\nid: ${status.chunks_done}\ndata: ${data}\n\n`
}
