// Progress of batches as server-sent events. One question a second to the store serves every stream of the process, and
// none holds a connection to it. A reader that is slow misses states between, never the last.
import { Readable } from 'node:stream'
import * as intake from '../../../src/store/intake.ts'
import type { GatewayDeps } from '../deps.ts'
import { type BatchStatus, statusOf } from './status.ts'

export interface Events {
  /** Undefined where there are as many streams as are allowed. */
  open(first: intake.Intake): Readable | undefined
  /** Ends every stream. */
  close(): void
}

export const STREAMS_MAX = 200
const LOOK_MS = 1_000
/** Proxies close what is silent for longer than half a minute or so. */
const HEARTBEAT_MS = 15_000

interface Watcher {
  stream: Readable
  told: string
  toldAt: number
  /** The stream took no more; what comes meanwhile is passed over. */
  full: boolean
}

export function openEvents({ store, clock, log }: Pick<GatewayDeps, 'store' | 'clock' | 'log'>): Events {
  const watched = new Map<number, Set<Watcher>>()
  let streams = 0
  let timer: NodeJS.Timeout | undefined
  let closed = false

  function push(watcher: Watcher, text: string): void {
    watcher.toldAt = clock()
    watcher.full = !watcher.stream.push(text)
  }
  function tell(watcher: Watcher, status: BatchStatus): void {
    const data = JSON.stringify(status)
    if (status.finished) {
      if (watcher.told !== data) push(watcher, eventOf('progress', status, data))
      push(watcher, eventOf('finished', status, data))
      watcher.stream.push(null)
    } else if (!watcher.full && watcher.told !== data) push(watcher, eventOf('progress', status, data))
    else if (!watcher.full && clock() - watcher.toldAt >= HEARTBEAT_MS) push(watcher, ': still there\n\n')
    watcher.told = data
  }
  async function look(): Promise<void> {
    for (const found of await intake.findByNumbers(store, [...watched.keys()])) {
      for (const watcher of watched.get(found.intakeNo) ?? []) tell(watcher, statusOf(found, false))
    }
  }
  function lookSoon(): void {
    if (timer !== undefined || closed || streams === 0) return
    timer = setTimeout(async () => {
      await look().catch(error => log.debug({ err: error }, 'progress could not be read; it will be'))
      timer = undefined
      lookSoon()
    }, LOOK_MS)
  }
  function forget(intakeNo: number, watcher: Watcher): void {
    const those = watched.get(intakeNo)
    if (!those?.delete(watcher)) return
    streams -= 1
    if (those.size === 0) watched.delete(intakeNo)
  }
  return {
    open(first) {
      if (streams >= STREAMS_MAX || closed) return undefined
      const { intakeNo } = first
      const watcher: Watcher = { stream: undefined as never, told: '', toldAt: clock(), full: false }
      watcher.stream = new Readable({
        read: () => {
          watcher.full = false
        },
      })
      watcher.stream.once('close', () => forget(intakeNo, watcher))
      streams += 1
      watched.set(intakeNo, (watched.get(intakeNo) ?? new Set()).add(watcher))
      tell(watcher, statusOf(first, false))
      lookSoon()
      return watcher.stream
    },
    close() {
      closed = true
      clearTimeout(timer)
      for (const watchers of [...watched.values()]) for (const { stream } of watchers) stream.push(null)
    },
  }
}

/** Chunks done are the event's id: whoever connects again is told the state of that moment, whatever it saw before. */
function eventOf(name: 'progress' | 'finished', status: BatchStatus, data: string): string {
  return `event: ${name}\nid: ${status.chunks_done}\ndata: ${data}\n\n`
}
