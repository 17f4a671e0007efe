// Tells of a row that says what was decided, or what is told of it, and that tokenmill did not write, or that was changed since:
// a count and a log line. Such a row is told to nobody.
import type { Logger } from '../../src/logger.ts'
import type { UNPROVED_KINDS, WorkerMetrics } from './metrics.ts'

/** `id`: of the receipt, of the outbox row, or of the event's delivery. */
export type TellUnproved = (kind: (typeof UNPROVED_KINDS)[number], id: string | number) => void

export function openTellUnproved(log: Logger, { unproved }: Pick<WorkerMetrics, 'unproved'>): TellUnproved {
  return (kind, id) => {
    unproved.inc({ kind })
    log.error({ kind, id }, 'a row was not written by tokenmill, or was changed since: it is told to nobody')
  }
}
