// Recurring tasks on reports: the scheduler removes old reports with their files, and files that crashed attempts left behind;
// workers end reports as failed that nobody makes any more.
import { isOurs } from '../../src/report/files/file-name.ts'
import type { ReportFiles } from '../../src/report/files/files.ts'
import * as retention from '../../src/store/report/report-retention.ts'
import * as reports from '../../src/store/report/reports.ts'
import type { Deps } from '../deps.ts'

const DAY_MS = 86_400_000
/** Longer than any attempt, so a file that is being written never counts as an orphan. */
const ORPHAN_MS = 2 * DAY_MS
/** Much longer than the pause between two attempts of a job. A job that comes back later begins its report again. */
const ABANDONED_MS = DAY_MS / 24
const PAGE = 500

export interface SweptReports {
  removed: number
  orphans: number
}

/** Ends as failed what nobody makes any more, and tells it. `now`: ms since the epoch. Returns how many. */
export function endAbandoned({ store, ring }: Pick<Deps, 'store' | 'ring'>, now: number): Promise<number> {
  return reports.failAbandoned(store, ring, now - ABANDONED_MS)
}

/** Without a place for files nothing is done; a host that reaches the files does it. */
export async function sweepReports(
  { store }: Pick<Deps, 'store'>,
  files: ReportFiles | undefined,
  reportDays: number,
  now: number,
): Promise<SweptReports> {
  if (!files) return { removed: 0, orphans: 0 }
  let removed = 0
  for (;;) {
    const old = await retention.findOld(store, now - reportDays * DAY_MS, PAGE)
    for (const { reportUid, storageKey } of old) {
      // The file is removed before the row: a row without a file can be swept again, a file without a row only as an
      // orphan.
      if (storageKey !== null) await files.remove(storageKey)
      await reports.remove(store, reportUid)
      removed += 1
    }
    if (old.length < PAGE) break
  }
  return { removed, orphans: await removeOrphans({ store }, files, now) }
}

async function removeOrphans({ store }: Pick<Deps, 'store'>, files: ReportFiles, now: number): Promise<number> {
  let removed = 0
  let page: string[] = []
  const flush = async () => {
    for (const key of page.length === 0 ? [] : await retention.findOrphans(store, page)) {
      await files.remove(key)
      removed += 1
    }
    page = []
  }
  for await (const { key, modifiedAt } of files.list()) {
    if (now - modifiedAt < ORPHAN_MS || !isOurs(key)) continue
    page.push(key)
    if (page.length === PAGE) await flush()
  }
  await flush()
  return removed
}
