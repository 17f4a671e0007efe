// Watches whether the queue server is available. After a call of `suspect` it pings the server, every half second until
// a ping succeeds. It reports `away` after the first ping that fails, and `back` after the ping that succeeds again.
// The connections reconnect by themselves.
const PROBE_MS = 500

interface Availability {
  /** Checks whether the server is away. Call it after an error. */
  suspect(): void
  on(event: 'away' | 'back', listener: () => void): void
  close(): void
}

/** `ping` must reject within seconds while the server is away. */
export function openAvailability(ping: () => Promise<void>): Availability {
  const listeners = { away: [] as (() => void)[], back: [] as (() => void)[] }
  let closed = false
  let watching = false
  let timer: NodeJS.Timeout | undefined

  const answers = () =>
    ping().then(
      () => true,
      () => false,
    )
  async function watch(): Promise<void> {
    watching = true
    let away = false
    while (!closed && !(await answers())) {
      if (!away && !closed) for (const listener of listeners.away) listener()
      away = true
      await new Promise<void>(resolve => {
        timer = setTimeout(resolve, PROBE_MS)
      })
    }
    watching = false
    if (away && !closed) for (const listener of listeners.back) listener()
  }
  return {
    suspect() {
      if (!closed && !watching) void watch()
    },
    on: (event, listener) => listeners[event].push(listener),
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}
