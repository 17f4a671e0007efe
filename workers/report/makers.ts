// Which processes make reports: those with a place for report files. They record that in the store. A process without a
// place leaves `report` jobs to them. If no process has recorded it lately, it takes the jobs and refuses them, so that
// a request doesn't wait until its `exp`.
import type { Worker } from '../../src/queue/engine.ts'
import { every } from '../../src/recurring.ts'
import * as installation from '../../src/store/installation.ts'
import type { Deps } from '../deps.ts'

/**
 * Requests for reports are refused once no host that makes reports was seen for this long, in ms. So hosts may be away
 * for an upgrade.
 */
const AWAY_MS_MAX = 3_600_000
const SAY_MS = 60_000
const LOOK_MS = 5_000

/** Whether some host makes reports. */
export function areReportsMade({ store }: Pick<Deps, 'store'>): Promise<boolean> {
  return installation.areReportsMade(store, AWAY_MS_MAX)
}

/**
 * A process with a place records that regularly. Another process pauses its worker while others make reports, and
 * resumes it otherwise. `worker`: the worker on the queue of reports. Returns a function that stops the watch.
 */
export async function watchReportMakers(
  worker: Pick<Worker, 'pause' | 'resume'>,
  deps: Pick<Deps, 'store' | 'log'>,
  makesReports: boolean,
): Promise<() => Promise<void>> {
  const say = () => installation.recordReportMaker(deps.store)
  const look = async () => ((await areReportsMade(deps)) ? worker.pause() : worker.resume())
  await (makesReports ? say() : look())
  return makesReports ? every(SAY_MS, say, deps) : every(LOOK_MS, look, deps)
}
