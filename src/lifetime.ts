// What a process has opened, closed in reverse and within a deadline. Only the main files own one; a room that
// opens something returns it to them. It isn't a container: nothing is looked up here.

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
    const seen = (signal: NodeJS.Signals) => {
      process.once('SIGINT', () => process.exit(130))
      process.once('SIGTERM', () => process.exit(143))
      resolve(signal)
    }
    process.once('SIGINT', seen)
    process.once('SIGTERM', seen)
  })
}
