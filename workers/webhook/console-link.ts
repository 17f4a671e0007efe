// The address of the console's page that shows more about an event: for receivers of operators alone, because the console is none of
// other clients' business. It is the address in this worker's own settings.
import type { EventType } from '../../src/job/event.ts'
import type { Outgoing } from '../../src/store/event/deliveries.ts'

/** `batch`, `report`: that one's page, where it is known. */
const PAGES: Partial<Record<EventType, 'batch' | 'report' | 'now'>> = {
  'batch.finished': 'batch',
  'batch.stalled': 'batch',
  'report.succeeded': 'report',
  'report.failed': 'report',
  'capture-key.in-use': 'now',
  'key.expiring': 'now',
}

/**
 * Undefined if there is no page, the receiver is no operator's, or the settings name no console that others reach. `findRun`: the
 * run of a schedule that asked for the report; undefined if none did.
 */
export async function consoleLink(
  { type, isOperators, batchNo }: Pick<Outgoing, 'type' | 'isOperators' | 'batchNo'>,
  { origin }: { origin: string },
  findRun: () => Promise<string | undefined>,
): Promise<string | undefined> {
  const page = PAGES[type]
  // The default is a console on this host.
  if (page === undefined || !isOperators || !origin.startsWith('https://')) return undefined
  if (page === 'now') return `${origin}/now`
  if (page === 'batch') return batchNo === null ? `${origin}/batches` : `${origin}/batches/${batchNo}`
  const run = await findRun()
  return run === undefined ? `${origin}/reports` : `${origin}/reports/runs/${run}`
}
