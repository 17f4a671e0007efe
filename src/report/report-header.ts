// The header of a report and the interface of a format: the same facts for every format.
import type { Definition, Plan } from './definition.ts'
import type { Entry, Total } from './tie-out.ts'

export interface Head {
  reportUid: string
  entityId: string
  /** The moment of the snapshot, ms since the epoch. */
  asOf: number
  totals: readonly Total[]
}

/** A format: entries in, the file's bytes out, piece by piece. */
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
