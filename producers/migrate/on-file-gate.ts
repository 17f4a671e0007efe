// Lets chunks that name owners of cards pass only while every live worker understands them: a worker of an older release
// would reject each row with `on_file`, and refuse a chunk of the kind `reference`.
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../src/config.ts'
import { SPEAKING } from '../../src/job/envelope/features.ts'
import type { FileRunDeps } from '../file-run.ts'
import { type LiveFeatures, listedFeatures, watchFeatures } from '../live-features.ts'
import type { MigrateOptions } from './options.ts'

export interface OnFileGate {
  /** Waits for workers to say so. Throws a ConfigError where they don't; returns early where the run is to stop. */
  pass(): Promise<void>
  close(): Promise<void>
}

const OPEN: OnFileGate = { pass: async () => {}, close: async () => {} }

/** Workers that have just been started say so within this time. */
const BEGIN_MS = 20_000
/** A worker that died without a word counts as live for so long. */
const LATER_MS = SPEAKING.countedMs + SPEAKING.freshMs
const LOOK_MS = 100

type Sent = Pick<MigrateOptions, 'profile' | 'recordKind'>

export function openOnFileGate({ profile, recordKind }: Sent, deps: FileRunDeps): OnFileGate {
  if (!profile?.on_file && recordKind !== 'reference') return OPEN
  const { queues, credentials, clock, log, stop } = deps
  const features = watchFeatures(deps.features ?? listedFeatures(queues, credentials, clock), { log })
  let waitMs = deps.featureWaitMs ?? BEGIN_MS
  return {
    async pass() {
      await features.ready
      if (await isKnown(features, waitMs, stop)) waitMs = deps.featureWaitMs ?? LATER_MS
      else if (!stop.aborted) throw new ConfigError(notUnderstood(recordKind))
    },
    close: features.close,
  }
}

function notUnderstood(recordKind: Sent['recordKind']): string {
  const what = recordKind === 'reference' ? 'the release of owners' : 'on_file, which the profile gives'
  return `not every live worker understands ${what}: upgrade all workers to this release, or start them if none runs, then run the same command again`
}

async function isKnown(features: Pick<LiveFeatures, 'has'>, ms: number, stop: AbortSignal): Promise<boolean> {
  const until = performance.now() + ms
  while (!features.has('on_file') && !stop.aborted && performance.now() < until) await sleep(LOOK_MS)
  return features.has('on_file')
}
