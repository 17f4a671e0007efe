// Tells of a row that grants rights, or says where something goes, and that tokenmill did not write: a count and a log line.
// The reader treats the row as absent.
import type { Logger } from '../../logger.ts'
import type { MetricsRegistry } from '../../metrics.ts'
import { GRANT_KINDS, type GrantKind } from './grants.ts'

export type UngrantedCounter = ReturnType<typeof openUngrantedCounter>
export type TellUngranted = (kind: GrantKind, id: string) => void

export function openUngrantedCounter({ counter }: Pick<MetricsRegistry, 'counter'>) {
  return counter('ungranted_rows_total', 'Reads of a row that grants rights and that tokenmill did not write.', {
    kind: GRANT_KINDS,
  })
}

export function openTellUngranted(log: Logger, counter: UngrantedCounter): TellUngranted {
  return (kind, id) => {
    counter.inc({ kind })
    log.error(
      { kind, id },
      'a row that grants rights was not written by tokenmill, or was changed since: it is ignored',
    )
  }
}
