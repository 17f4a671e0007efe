// Which files belong to which feature. Every other file of the product is core: what a single job, a batch and a token over
// HTTP need.

interface Feature {
  /** The features that it may import. */
  mayImport: readonly string[]
  /** Folders and files; the longest path that fits a file decides. */
  paths: readonly string[]
}

export const FEATURES = {
  audit: {
    mayImport: ['reports'],
    paths: [
      'src/audit',
      'workers/audit',
      'cli/commands/audit',
      'cli/usage/audit.ts',
      'src/store/access/audit-list.ts',
      'src/store/access/audit-search.ts',
      'src/store/access/audit-tables.ts',
      'cli/open/audit-place.ts',
    ],
  },
  console: {
    mayImport: ['operate', 'networks', 'reports', 'keys', 'audit'],
    paths: [
      'producers/console',
      'src/store/console',
      'src/store/person',
      'src/vault/passkey',
      'workers/act',
      'workers/act.ts',
      'src/job/system/account.ts',
      'src/job/system/act-row.ts',
      'src/job/system/act.ts',
      'src/job/system/batch-act.ts',
      'src/job/system/failed-act.ts',
      'src/job/system/list-exports.ts',
      'src/job/system/own-act.ts',
      'src/job/system/people.ts',
      'src/job/system/schedule-act.ts',
      'src/acts/display.ts',
      'src/acts/failed-acts.ts',
      'src/acts/former-domain.ts',
      'src/acts/identities.ts',
      'src/acts/person-grants.ts',
      'src/acts/person.ts',
      'src/acts/person-proof.ts',
      'src/acts/person-rights.ts',
      'cli/commands/person',
      'cli/process/console.ts',
      'cli/process/openid.ts',
      'cli/process/start-link.ts',
      'cli/usage/display.ts',
      'cli/usage/person.ts',
    ],
  },
  demo: {
    mayImport: ['files', 'ledger', 'reports'],
    paths: ['cli/commands/demo', 'cli/usage/demo.ts'],
  },
  files: {
    mayImport: [],
    paths: [
      'producers/diff',
      'producers/inspect',
      'producers/migrate',
      'producers/rows/file-rows.ts',
      'producers/rows/only',
      'producers/rows/openpgp',
      'producers/rows/outcome/early-word.ts',
      'producers/rows/outcome/mask.ts',
      'producers/rows/outcome/preview.ts',
      'producers/rows/outcome/read-results.ts',
      'producers/rows/outcome/reject-row.ts',
      'producers/rows/outcome/return-row.ts',
      'producers/rows/outcome/run-lock.ts',
      'producers/rows/outcome/series-word.ts',
      'producers/rows/partitions.ts',
      'producers/rows/profile',
      'producers/rows/row-texts.ts',
      'producers/rows/source.ts',
      'producers/rows/spreadsheet',
      'producers/rows/validate-file.ts',
      'cli/commands/inspect.ts',
      'cli/commands/migrate',
      'cli/commands/migrate.ts',
      'cli/commands/profile.ts',
      'cli/usage/files.ts',
    ],
  },
  'http-client': {
    mayImport: ['reports'],
    paths: ['producers/http-client'],
  },
  keys: {
    mayImport: ['audit', 'three-ds', 'networks'],
    paths: [
      'src/acts/confirmation.ts',
      'src/acts/key',
      'src/store/access/confirmations.ts',
      'src/store/access/key-notices.ts',
      'src/acts/capture-turning.ts',
      'src/store/reseal',
      'src/vault/shares',
      'workers/reseal',
      'workers/process/capture-keys.ts',
      'workers/process/full-keys.ts',
      'cli/commands/key',
      'cli/open/typed-shares.ts',
      'cli/usage/key.ts',
    ],
  },
  kms: {
    mayImport: [],
    paths: ['src/vault/kms', 'src/vault/pkcs11'],
  },
  ledger: {
    mayImport: ['files'],
    paths: [
      'producers/ingest',
      'producers/gateway/order-notes.ts',
      'producers/gateway/orders.ts',
      'producers/transaction-batch.ts',
      'src/job/ledger',
      'src/job/transaction-batch.ts',
      'src/orders',
      'src/store/ledger',
      'workers/transaction-batch.ts',
      'cli/commands/ingest.ts',
      'cli/usage/ingest.ts',
    ],
  },
  networks: {
    mayImport: [],
    paths: [
      'producers/scheme-token.ts',
      'producers/gateway/tokens/notifications.ts',
      'producers/gateway/tokens/scheme-view.ts',
      'src/job/scheme-token.ts',
      'src/scheme',
      'src/store/provider',
      'workers/provider',
      'workers/chunk/schemes.ts',
      'workers/scheme-token.ts',
      'cli/commands/scheme.ts',
      'cli/process/providers.ts',
      'cli/usage/scheme.ts',
    ],
  },
  operate: {
    mayImport: ['reports', 'networks', 'keys', 'three-ds', 'files'],
    paths: [
      'producers/operate',
      'src/store/explain',
      'src/store/sealed-sample.ts',
      'src/store/watch/tables.ts',
      'src/store/watch/watched.ts',
      'cli/commands/batch/batch.ts',
      'cli/commands/operate',
      'cli/usage/batch.ts',
      'cli/usage/operate',
    ],
  },
  reports: {
    mayImport: ['ledger', 'networks'],
    paths: [
      'producers/gateway/reports',
      'producers/http/messages/reports.ts',
      'producers/report.ts',
      'producers/schedule',
      'src/acts/schedule.ts',
      'src/job/report.ts',
      'src/job/schedule',
      'src/report',
      'src/rsql',
      'src/store/report',
      'src/store/report-queries',
      'workers/report',
      'workers/report.ts',
      'cli/commands/report.ts',
      'cli/commands/reports.ts',
      'cli/commands/schedule.ts',
      'cli/commands/schedule-runs.ts',
      'cli/docs/reports.ts',
      'cli/open/report-files.ts',
      'cli/process/report-process.ts',
      'cli/usage/report.ts',
      'cli/usage/schedule.ts',
    ],
  },
  'sign-off': {
    mayImport: ['files', 'reports'],
    paths: [
      'producers/pack',
      'src/acts/manifest.ts',
      'src/job/system/manifest-total.ts',
      'src/store/total',
      'workers/manifest-total.ts',
      'workers/total',
      'cli/commands/manifest',
      'cli/process/total.ts',
      'cli/usage/manifest.ts',
    ],
  },
  simulators: {
    mayImport: [],
    paths: [
      'src/simulate',
      'cli/commands/simulate.ts',
      'cli/commands/simulate-kms.ts',
      'cli/commands/simulate-three-ds.ts',
      'cli/usage/simulate.ts',
    ],
  },
  'three-ds': {
    mayImport: ['traces'],
    paths: [
      'producers/gateway/three-ds',
      'src/acts/contract-grants.ts',
      'src/acts/contract-key.ts',
      'src/store/three-ds',
      'src/three-ds',
      'cli/commands/threeds-contract',
      'cli/process/three-ds.ts',
      'cli/usage/threeds-contract.ts',
    ],
  },
  traces: {
    mayImport: [],
    paths: [
      'src/trace/export-queue.ts',
      'src/trace/metrics.ts',
      'src/trace/otel.ts',
      'src/trace/settings.ts',
      'cli/open/tracing.ts',
    ],
  },
  webhooks: {
    mayImport: [],
    paths: [
      'src/acts/endpoint-grants.ts',
      'src/acts/events.ts',
      'src/job/system/webhook.ts',
      'workers/webhook',
      'workers/webhook.ts',
      'cli/commands/events',
      'cli/usage/events.ts',
    ],
  },
} as const satisfies Record<string, Feature>
export type FeatureName = keyof typeof FEATURES

/**
 * Files that compose a process of core and features; only entries and other compositions import them. They may import
 * everything.
 */
export const COMPOSITIONS = [
  'cli/commands/run.ts',
  'cli/docs/main.ts',
  'cli/docs/schema.ts',
  'cli/main.ts',
  'cli/open/grant-lists.ts',
  'cli/open/kek-openers.ts',
  'cli/process/gateway.ts',
  'cli/process/scheduler.ts',
  'cli/process/worker-process.ts',
  'cli/process/workers.ts',
  'cli/usage/roles.ts',
  'producers/client/composition.ts',
  'producers/gateway/services.ts',
  'src/job/composition.ts',
  'src/store/composition.ts',
  'workers/composition.ts',
  'workers/scheduled.ts',
]

/** The tables of a feature, and the classes of their columns, have its name. */
const MIGRATION = /^src\/store\/migrations\/[^/]+\/(.+)\.(?:sql|json)$/

/** The feature of a file; undefined for the core. */
export function featureOf(path: string): FeatureName | undefined {
  const table = MIGRATION.exec(path)?.[1]
  if (table !== undefined && Object.hasOwn(FEATURES, table)) return table as FeatureName
  let found: { name: FeatureName; length: number } | undefined
  for (const [name, { paths }] of Object.entries(FEATURES) as [FeatureName, Feature][])
    for (const within of paths)
      if ((path === within || path.startsWith(`${within}/`)) && within.length > (found?.length ?? 0))
        found = { name, length: within.length }
  return found?.name
}
