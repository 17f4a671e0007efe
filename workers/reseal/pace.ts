// Decides how fast a re-encryption goes: at most a set number of rows per second, a share of that number while the store or
// the jobs on cards have too much to do, and not at all while a replica is behind.
import type { StoreLoad } from '../../src/store/reseal/store-load.ts'

/** To look at a row counts as this part of a replaced row. */
const LOOK_SHARE = 1 / 20
const WATCH_MS = 1_000
const MEASURE_MS = 5_000
/** The share is halved at each measurement that finds too much, and raised by half at each that doesn't; never below this. */
const SHARE_MIN = 1 / 64
/** If there are more dead rows than this part of the live ones, autovacuum doesn't keep up: by default it begins at a fifth. */
const DEAD_SHARE_MAX = 1 / 2
/** Up to this number, dead rows don't slow the re-encryption: in a small table a few are a large part. */
const DEAD_ROWS_MIN = 10_000

export interface PaceOptions {
  rowsPerSecondMax: number
  /** While a replica is further behind, the re-encryption waits. */
  replicaLagMsMax: number
  /** The re-encryption goes slower while the 99th percentile of interactive jobs on cards takes longer in any worker. */
  workMsMax: number
  /** The re-encryption goes slower while the server writes more WAL, whatever causes that. */
  walBytesPerSecondMax: number
}

/** `workMs`: the 99th percentile in the slowest worker; null if no worker has had enough jobs. */
export type Load = StoreLoad & { workMs: number | null }

export interface Pace {
  /** How long to wait after a set, ms. */
  after(set: { scanned: number; found: number }): number
  /** Rows that were looked at per second, measured over 5 s or more; null before the first measurement. */
  rate(): number | null
  /** Whether a replica is too far behind. It measures once a second. */
  isBehind(measure: () => Promise<Load | undefined>): Promise<boolean>
  /** Which share of the rows per second is used now, and why it is less than all of them. */
  share(): { share: number; reasons: readonly string[] }
  /** True at most once a second: then the caller checks whether the key was replaced. */
  isWatchDue(): boolean
}

/** `now`: a clock in ms that never goes back. */
export function openPace(options: PaceOptions, now = () => performance.now()): Pace {
  let freeAt = now()
  let watchAt = 0
  let behind = false
  let lagAt = 0
  let since = { at: now(), rows: 0 }
  let measured: number | null = null
  let share = 1
  let reasons: string[] = []
  let wal: { at: number; bytes: number } | undefined

  function adapt(load: Load): void {
    const at = now()
    if (wal && at - wal.at < MEASURE_MS) return
    const walPerSecond = wal ? ((load.walBytes - wal.bytes) * 1000) / (at - wal.at) : 0
    wal = { at, bytes: load.walBytes }
    reasons = reasonsOf(load, walPerSecond, options)
    share = reasons.length > 0 ? Math.max(SHARE_MIN, share / 2) : Math.min(1, share * 1.5)
  }

  return {
    after({ scanned, found }) {
      const at = now()
      const cost = Math.max(found, scanned * LOOK_SHARE)
      // A slow set doesn't let the next one go faster.
      freeAt = Math.max(freeAt + (cost / (options.rowsPerSecondMax * share)) * 1000, at)
      since.rows += scanned
      if (at - since.at >= MEASURE_MS) {
        measured = Math.round((since.rows * 1000) / (at - since.at))
        since = { at, rows: 0 }
      }
      return freeAt - at
    },
    rate: () => measured,
    async isBehind(measure) {
      if (now() >= lagAt) {
        const load = await measure()
        behind = (load?.replicaLagMs ?? 0) > options.replicaLagMsMax
        if (load) adapt(load)
        lagAt = now() + WATCH_MS
      }
      return behind
    },
    share: () => ({ share, reasons }),
    isWatchDue() {
      if (now() < watchAt) return false
      watchAt = now() + WATCH_MS
      return true
    },
  }
}

function reasonsOf({ workMs, rowsLive, rowsDead }: Load, walPerSecond: number, options: PaceOptions): string[] {
  const reasons: string[] = []
  if ((workMs ?? 0) > options.workMsMax) reasons.push('jobs on cards are slow')
  if (walPerSecond > options.walBytesPerSecondMax) reasons.push('the store writes much WAL')
  if (rowsDead > Math.max(DEAD_ROWS_MIN, rowsLive * DEAD_SHARE_MAX)) reasons.push('autovacuum does not keep up')
  return reasons
}
