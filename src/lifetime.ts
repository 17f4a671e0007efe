// What a process has opened, closed in reverse and within a deadline, and what ends a process: signals, and the end of
// its parent. Only the main files use it; a room that opens something returns it to them. It isn't a container:
// nothing is looked up here.
import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'

export type Closer = () => Promise<unknown> | unknown

export interface Lifetime {
  /** Registers how to close what was just opened. */
  onClose(name: string, close: Closer): void
  /** Closes everything in reverse order, once. A closer that fails or hangs is reported and passed over. */
  close(): Promise<void>
}

export interface LifetimeOptions {
  /** How long one closer may take before it is passed over. */
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

/** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
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

/** A person's second Ctrl-C comes later than this. */
const SAME_PRESS_MS = 200

/** Calls `listener` at each signal of these names. Returns how to stop. */
export function onSignal(names: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void {
  let last: { signal: NodeJS.Signals; at: number } | undefined
  const hear = (signal: NodeJS.Signals) => {
    const at = performance.now()
    // A terminal sends Ctrl-C to npm and to us, and npm then sends us the same once more: that is one Ctrl-C.
    const isEcho = last?.signal === signal && at - last.at < SAME_PRESS_MS && hasTerminal()
    last = { signal, at }
    if (!isEcho) listener(signal)
  }
  for (const name of names) process.on(name, hear)
  return () => {
    for (const name of names) process.off(name, hear)
  }
}

/** Whether a terminal controls this process, whatever its streams are connected to. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

/**
 * Ends this process as SIGTERM does once the process that forked it is gone, however that ended. To be called before
 * anything is opened: an end that nobody listened for is not told again.
 */
export function endWithParent(): void {
  const end = () => process.kill(process.pid, 'SIGTERM')
  if (process.connected === false) end()
  else if (process.connected) process.once('disconnect', end)
}
