// How long the interactive jobs on cards of the last seconds took, in this process. The process's heartbeat holds the
// figure, so that work without a deadline, such as a re-encryption, slows down when it is high.

const CARD_KINDS: readonly string[] = ['token-create', 'token-update', 'token-lifecycle']
const WINDOW_MS = 10_000
/** The newest attempts that are kept; each further one replaces the oldest. */
const KEPT_MAX = 4_096
/** With fewer attempts than this no figure is given, because a single slow one would decide it. */
const COUNT_MIN = 20

export interface RecentAttempts {
  /** An attempt ended. */
  note(kind: string, ms: number): void
  /** The 99th percentile, ms; null after too few attempts. */
  p99(): number | null
}

/** `now`: ms that never go back. */
export function openRecentAttempts(now = () => performance.now()): RecentAttempts {
  const kept: { at: number; ms: number }[] = []
  let next = 0
  return {
    note(kind, ms) {
      if (!CARD_KINDS.includes(kind)) return
      kept[next] = { at: now(), ms }
      next = (next + 1) % KEPT_MAX
    },
    p99() {
      const since = now() - WINDOW_MS
      const took = kept.filter(({ at }) => at >= since).map(({ ms }) => ms)
      if (took.length < COUNT_MIN) return null
      took.sort((a, b) => a - b)
      return Math.round(took[Math.ceil(took.length * 0.99) - 1] ?? 0)
    },
  }
}
