// What the line and its handlers get: everything that a worker process has opened. They open nothing themselves.
import type { Clock } from '../src/clock.ts'
import type { Catalogue } from '../src/job/catalogue.ts'
import type { Logger } from '../src/logger.ts'
import type { Queues } from '../src/queue/engine.ts'
import type { CaptureUse } from '../src/store/capture/use.ts'
import type { Store } from '../src/store/pool.ts'
import type { Span, Tracer } from '../src/trace/tracer.ts'
import type { LiveRing } from '../src/vault/ring/key-ring.ts'
import type { TellUngranted } from '../src/vault/ring/ungranted.ts'
import type { Announcer } from './answer/announce.ts'
import type { BatchProgress } from './batch-progress.ts'
import type { Directory } from './directory.ts'
import type { KeyReaders } from './key-readers.ts'
import type { DroppedEnvelopes } from './metrics/dropped-envelopes.ts'
import type { WorkerMetrics } from './metrics/metrics.ts'
import type { TellUnproved } from './metrics/unproved.ts'
import type { Networks } from './networks.ts'
import type { LookUps } from './set/look-ups.ts'
import type { Sets } from './set/single.ts'

export interface Deps {
  settings: Settings
  catalogue: Catalogue
  store: Store
  /** What single jobs read, for those that ask at the same time together. */
  lookUps: LookUps
  /** Writes single jobs, those that ask at the same time together. */
  sets: Sets
  /** Both for background jobs, which gather among themselves: a job for which somebody waits isn't behind a set of theirs. */
  background: Pick<Deps, 'lookUps' | 'sets'>
  queues: Queues
  ring: LiveRing
  directory: Directory
  announcer: Announcer
  captureUse: Pick<CaptureUse, 'note'>
  progress: Pick<BatchProgress, 'note'>
  dropped: Pick<DroppedEnvelopes, 'note'>
  keyReaders: KeyReaders
  clock: Clock
  metrics: WorkerMetrics
  log: Logger
  /** Undefined if traces are off. */
  tracer?: Tracer | undefined
  /** The span of the job that is being worked, or of its current step; undefined if traces are off. */
  span?: Span | undefined
  /** Told of a row that grants rights and that tokenmill didn't write, or that was changed since. */
  onUngranted: TellUngranted
  /** Told of a receipt, a result or an event that tokenmill didn't write, or that was changed since. */
  onUnproved: TellUnproved
  /** `noNetworks` in a product without them. */
  networks: Networks<Deps>
  /**
   * Called with each record, of a chunk or a single job, before it is decided. Tests use it to cause failures;
   * production sets none.
   */
  inspect?: (record: { line?: number; reference?: string | undefined }) => void
}

export interface Settings {
  audience: string
  thirdPartyTypes: readonly string[]
  localSchemes: readonly string[]
  guessesMax: number
  dryRunRowsMax: number
}
