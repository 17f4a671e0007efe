// Why a run of a schedule ended as it did, in words, and what to do about it. Commands and pages print them.
import { FAULTS, REASONS } from '../../src/errors.ts'
import { reportKind } from '../../src/job/report.ts'

/** Reasons that aren't in the tables of src/errors.ts, or say more there than is meant here. */
const OWN: Readonly<Record<string, string>> = {
  role_missing: `the schedule's client lacks the role ${reportKind.role}.`,
  client_revoked: "the schedule's client is revoked.",
  schedule_removed: 'the schedule was removed.',
  tokens_failed: 'some tokens could not be suspended; the next night finds them again.',
  unanswered: 'no worker answered for seven days.',
  fault: 'the attempt failed; a worker’s log line says why.',
}

/** Undefined for a reason of another release. */
export function runReasonText(reason: string): string | undefined {
  const known: Readonly<Record<string, { text: string }>> = { ...FAULTS, ...REASONS }
  return OWN[reason] ?? known[reason]?.text
}

const AGAIN = 'Then run this day again.'
const NEXT: Readonly<Record<string, string>> = {
  role_missing: `Give the client the role ${reportKind.role}, or schedule the report for another client. ${AGAIN}`,
  client_revoked: 'Schedule the report for another client, and remove this schedule.',
  entity_forbidden: `Let the client act for this entity again, or schedule the report for another client. ${AGAIN}`,
  schedule_removed: 'Nothing: somebody removed the schedule.',
  tokens_failed: 'Look at the failed jobs of the kind token-lifecycle. The next night finds these tokens again.',
  unanswered: `See whether workers of the kind report live. ${AGAIN}`,
  files_away: `Make the folder or bucket of REPORTS_URL reachable and writable for the workers. ${AGAIN}`,
  report_mismatch:
    'The lines of the report and the sums of the store differ: somebody changed the ledger by hand, or tokenmill has a defect. Report it.',
}

/** What to do when a run ended as FAILED for this reason. */
export function runNextStep(reason: string): string {
  return NEXT[reason] ?? `Remove the cause. ${AGAIN}`
}
