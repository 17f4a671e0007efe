// The header of a report, which has the same facts in every format, and the interface of a format.
import type { Definition, Plan } from './definition.ts'
import type { Entry, Total } from './tie-out.ts'

export interface Head {
  reportUid: string
  entityId: string
  /** When the snapshot was taken, ms since the epoch. */
  asOf: number
  totals: readonly Total[]
}

/** A format: takes entries and yields the bytes of the file, piece by piece. */
export type Write = (
  definition: Definition,
  plan: Plan,
  head: Head,
  entries: AsyncIterable<readonly Entry[]>,
) => AsyncIterable<string | Buffer>

export function periodText({ period }: Pick<Plan, 'period'>, asOf: number): string {
  if (!period) return `as of ${instant(asOf)}`
  return period.from === period.to ? period.from : `${period.from} to ${period.to}`
}

/** `2030-01-31T12:00:00Z` */
export const instant = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
