// The line and its handlers are handed everything that a worker process has opened, and nothing that they could open
// themselves.
import type { Clock } from '../src/clock.ts'
import type { SigningKey } from '../src/job/envelope/envelope.ts'
import type { Logger } from '../src/log.ts'
import type { Queues } from '../src/queue/engine.ts'
import type { Schemes } from '../src/scheme/open.ts'
import type { Store } from '../src/store/pool.ts'
import type { Span, Tracer } from '../src/trace/tracer.ts'
import type { KeyRing } from '../src/vault/key-ring.ts'
import type { BatchProgress } from './chunk/progress.ts'
import type { Directory } from './directory.ts'
import type { Announcer } from './line/announce.ts'
import type { DroppedEnvelopes } from './line/dropped-envelopes.ts'
import type { WorkerMetrics } from './metrics.ts'
import type { MakeReport } from './report/child.ts'
import type { Webhooks } from './webhook/post.ts'

export interface Deps {
  settings: Settings
  store: Store
  queues: Queues
  ring: KeyRing
  directory: Directory
  announcer: Announcer
  progress: Pick<BatchProgress, 'note'>
  dropped: Pick<DroppedEnvelopes, 'note'>
  clock: Clock
  metrics: WorkerMetrics
  log: Logger
  makeReport: MakeReport
  /** Undefined where there are no traces. */
  tracer?: Tracer | undefined
  /** Of the job that is worked, or of its present step, where traces are on. */
  span?: Span | undefined
  webhooks: Pick<Webhooks, 'post' | 'schedule'>
  /** Undefined where no scheme token network is set up. */
  providers?: Providers | undefined
  /** Is shown each record before it is decided, of a chunk or a single job. Tests make it misbehave; production has none. */
  inspect?: (record: { line?: number; reference?: string | undefined }) => void
}

export interface Providers {
  schemes: Pick<Schemes, 'network' | 'named' | 'thirdParty'>
  /** The system client `worker` signs the reversals of jobs that did something at providers in vain. */
  signingKey: SigningKey
}

export interface Settings {
  audience: string
  thirdPartyTypes: readonly string[]
  localSchemes: readonly string[]
  guessesMax: number
  dryRunRowsMax: number
  /** This process has a place for report files. */
  makesReports: boolean
}
