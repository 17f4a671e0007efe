// Closes what a process has opened, in reverse order, each with a time limit of its own; and tells when a process must
// end: at a signal, or when its parent ends. Only main files use it; a room that opens something returns it to them. It
// isn't a container: nothing is looked up here.
import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'

type Closer = () => Promise<unknown> | unknown

export interface Lifetime {
  /** Registers the function that closes what was just opened. */
  onClose(name: string, close: Closer): void
  /**
   * Closes everything in reverse order, once. If a closer fails or hangs, `onError` is called, and the next closer
   * follows.
   */
  close(): Promise<void>
}

interface LifetimeOptions {
  /** How long one closer may take before it is skipped. */
  closeMsMax?: number
  onError?: (name: string, error: unknown) => void
}

export function openLifetime(options: LifetimeOptions = {}): Lifetime {
  const { closeMsMax = 15_000, onError = () => {} } = options
  const closers: { name: string; close: Closer }[] = []
  let closing: Promise<void> | undefined
  async function closeAll(): Promise<void> {
    for (let closer = closers.pop(); closer; closer = closers.pop()) {
      const { name, close } = closer
      let timer: NodeJS.Timeout | undefined
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${name} did not close within ${closeMsMax} ms`)), closeMsMax)
      })
      await Promise.race([Promise.resolve().then(close), late])
        .catch(error => onError(name, error))
        .finally(() => clearTimeout(timer))
    }
  }
  return {
    onClose: (name, close) => closers.push({ name, close }),
    close: () => {
      closing ??= closeAll()
      return closing
    },
  }
}

/**
 * Resolves at the first SIGINT or SIGTERM; the next one ends the process at once. `onSignal` says what counts as one.
 */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    let asked = false
    onSignal(['SIGINT', 'SIGTERM'], signal => {
      if (asked) process.exit(128 + constants.signals[signal])
      asked = true
      resolve(signal)
    })
  })
}

/** In a terminal, the same signal within this time is a repetition of one Ctrl-C: a person is slower. */
const SAME_PRESS_MS = 200

/**
 * Calls `listener` at each of these signals, but not at a repetition of one Ctrl-C. Returns a function that removes the
 * listener.
 */
export function onSignal(names: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void {
  let last: { signal: NodeJS.Signals; at: number } | undefined
  const hear = (signal: NodeJS.Signals) => {
    const at = performance.now()
    // A terminal sends Ctrl-C to npm and to this process, and npm then forwards it: both signals are one Ctrl-C.
    const isEcho = last?.signal === signal && at - last.at < SAME_PRESS_MS && hasTerminal()
    last = { signal, at }
    if (!isEcho) listener(signal)
  }
  for (const name of names) process.on(name, hear)
  return () => {
    for (const name of names) process.off(name, hear)
  }
}

/** Whether this process has a controlling terminal, even if its streams are redirected. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

/**
 * Ends this process as SIGTERM would when the parent process ends, for whatever reason. A process without an IPC
 * channel to its parent isn't ended. Call it before anything is opened: Node reports the end of the parent only once.
 */
export function endWithParent(): void {
  const end = () => process.kill(process.pid, 'SIGTERM')
  if (process.connected === false) end()
  else if (process.connected) process.once('disconnect', end)
}
