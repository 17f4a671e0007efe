// A semaphore: limits how many things are in flight at once. Callers get permits in the order in which they ask.
import { ClosedError } from './errors.ts'

export interface Semaphore {
  /** Resolves once the caller has one of `max` permits; rejects with `ClosedError` once closed. */
  acquire(): Promise<void>
  release(): void
  taken(): number
  close(): void
}

export function openSemaphore(max: number): Semaphore {
  const waiting: PromiseWithResolvers<void>[] = []
  let taken = 0
  let closed = false
  return {
    async acquire() {
      if (closed) throw new ClosedError()
      if (taken < max) {
        taken += 1
        return
      }
      const turn = Promise.withResolvers<void>()
      waiting.push(turn)
      await turn.promise
    },
    release() {
      const next = waiting.shift()
      if (next) next.resolve()
      else taken -= 1
    },
    taken: () => taken,
    close() {
      closed = true
      for (const turn of waiting.splice(0)) turn.reject(new ClosedError())
    },
  }
}
