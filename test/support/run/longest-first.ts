// The order of test files: the longest first, so that none of them starts when the others are almost done. Files that
// aren't named follow in the order of their paths.
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files that took 12 seconds or more when this list was made. Those that mostly wait are spread among the others, so that
 * the processors always have work.
 */
export const LONGEST: readonly string[] = [
  'test/packages/server.test.ts',
  'test/packages/client.test.ts',
  'test/workers/webhook/webhooks.test.ts',
  'test/producers/gateway/outage.test.ts',
  'test/chaos/away.test.ts',
  'test/workers/card/phases.test.ts',
  'test/producers/pack/total.test.ts',
  'test/chaos/poison.test.ts',
  'test/chaos/results-full.test.ts',
  'test/workers/chunk/batch-life.test.ts',
  'test/workers/provider/batch.test.ts',
  'test/chaos/exactly-once-embedded.test.ts',
  'test/chaos/exactly-once-redis.test.ts',
  'test/security/canary.test.ts',
  'test/cli/launch.test.ts',
  'test/chaos/key-rotation.test.ts',
  'test/workers/report.test.ts',
  'test/cli/upgrade.test.ts',
  'test/cli/waits.test.ts',
  'test/producers/schedule/reports.test.ts',
  'test/cli/unanswered.test.ts',
  'test/chaos/failover.test.ts',
  'test/producers/operate/status.test.ts',
  'test/report/no-place.test.ts',
  'test/producers/gateway/process.test.ts',
  'test/chaos/exactly-once-postgres.test.ts',
  'test/queue/outage.test.ts',
  'test/producers/ingest/form.test.ts',
  'test/workers/provider/third-party-batch.test.ts',
  'test/cli/key/kms-kek.test.ts',
  'test/security/envelopes.test.ts',
  'test/cli/key/retire-fingerprint.test.ts',
  'test/trace/traces.test.ts',
  'test/producers/gateway/reports/reports.test.ts',
  'test/embedded/server.test.ts',
  'test/producers/gateway/server/key-rotation.test.ts',
  'test/producers/gateway/server/authenticate.test.ts',
  'test/producers/gateway/load.test.ts',
  'test/chaos/out-of-order.test.ts',
  'test/examples/checkout.test.ts',
  'test/workers/set/beside-submit.test.ts',
  'test/producers/pack/pack.test.ts',
  'test/workers/transaction-batch.test.ts',
  'test/ops/rules.test.ts',
  'test/workers/provider/rate-shares.test.ts',
  'test/workers/provider/network.test.ts',
  'test/trace/tracer.test.ts',
  'test/simulate/scheme.test.ts',
  'test/producers/diff/diff-then-apply.test.ts',
  'test/cli/key/compromise-fingerprint.test.ts',
  'test/ops/dashboards.test.ts',
  'test/producers/gateway/three-ds/process.test.ts',
  'test/cli/key/token-kek.test.ts',
  'test/workers/reversal.test.ts',
  'test/producers/pack/leave-out.test.ts',
  'test/producers/gateway/operations/operations.test.ts',
  'test/chaos/sets.test.ts',
  'test/producers/migrate/output-files.test.ts',
  'test/chaos/receipts.test.ts',
  'test/security/fields.test.ts',
  'test/cli/key/rotate-signing.test.ts',
  'test/chaos/cancel.test.ts',
  'test/workers/process/live-keys.test.ts',
  'test/embedded/root.test.ts',
  'test/producers/operate/doctor.test.ts',
  'test/cli/two-hosts.test.ts',
  'test/producers/gateway/batches/batches.test.ts',
  'test/producers/rows/source.test.ts',
  'test/producers/migrate/run.test.ts',
  'test/producers/operate/explain.test.ts',
  'test/producers/gateway/operations/idempotency.test.ts',
  'test/workers/set/result-sets.test.ts',
  'test/queue/hostile.test.ts',
]

/** Orders paths below the project's directory. */
export function byLength(a: string, b: string): number {
  return rank(a) - rank(b) || (a < b ? -1 : 1)
}

function rank(file: string): number {
  const place = LONGEST.indexOf(file)
  return place < 0 ? LONGEST.length : place
}

export class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const path = ({ moduleId }: TestSpecification) => relative(process.cwd(), moduleId)
    return Promise.resolve(files.toSorted((a, b) => byLength(path(a), path(b))))
  }
}
