// The thresholds of the alarms that the figures of Now are measured against: those of ops/prometheus/alert-rules.yml, whose
// numbers a test compares with these. What needs somebody is decided by the checks of `tokenmill status`.

export const ALARMS = {
  /** TokenmillInteractiveJobsWait. */
  interactiveMs: 30_000,
  /** TokenmillOutboxOld. */
  outboxMs: 300_000,
  /** TokenmillFailedSet. */
  failed: 0,
} as const
