// The name of the job of a run: always the same, whichever process sends it and however often. So a run has one receipt.
import { receiptId } from '../envelope/ids.ts'

interface RunName {
  scheduleId: string
  /** `YYYY-MM-DD`. */
  businessDate: string
  entityId: string
}

interface Owned {
  clientId: string
  /** Null: the schedule is for every entity of the client. */
  entityId: string | null
}

export function jtiOf({ scheduleId, businessDate, entityId }: RunName, schedule: Pick<Owned, 'entityId'>): string {
  const base = `sched-${scheduleId}-${businessDate}`
  return schedule.entityId === null ? `${base}-${entityId}` : base
}

/** The id of the receipt that the job of the run will have. */
export function receiptOf(run: RunName, schedule: Owned): string {
  return receiptId(schedule.clientId, jtiOf(run, schedule))
}
