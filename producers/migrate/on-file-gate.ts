// Lets chunks that name owners of cards, or compare source times, pass only while every live worker understands them: a
// worker of an older release would reject each row with `on_file`, and refuse a chunk of the kind `reference` or of the
// policy `newest`.
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../src/config.ts'
import { type Feature, SPEAKING } from '../../src/job/envelope/features.ts'
import type { Result } from '../../src/job/result.ts'
import { tellTo } from '../answer-deadline.ts'
import { openTrustedKeys } from '../client/trusted-keys.ts'
import type { FileRunDeps } from '../file-run.ts'
import { listedFeatures, watchFeatures } from '../live-features.ts'
import { FileError } from '../rows/file-error.ts'
import type { MigrateOptions } from './options.ts'

export interface OnFileGate {
  /**
   * Waits for workers to say so; where no worker listens, until one does. Throws a ConfigError where they don't say so;
   * returns early where the run is to stop.
   */
  pass(): Promise<void>
  close(): Promise<void>
}

const OPEN: OnFileGate = { pass: async () => {}, close: async () => {} }

/** How long a worker that died counts as live, in ms, even if another one was started in its place. */
const WAIT_MS = SPEAKING.countedMs + SPEAKING.freshMs
/** A person is told of a longer wait. */
const TELL_MS = 2_000
const READ_MS = 1_000
const LOOK_MS = 100
/** How often the workers that listen are counted: once a second. */
const LOOKS_PER_COUNT = 10
const NOBODY = 'no worker listens on token-batch; start one with `tokenmill workers`. Waiting ...'

type Sent = Pick<MigrateOptions, 'profile' | 'recordKind' | 'onConflict'>

function neededBy({ profile, recordKind, onConflict }: Sent): Feature[] {
  const needed: Feature[] = profile?.on_file || recordKind === 'reference' ? ['on_file'] : []
  return onConflict === 'newest' ? [...needed, 'newest'] : needed
}

export function openOnFileGate(sent: Sent, deps: FileRunDeps): OnFileGate {
  const needed = neededBy(sent)
  if (needed.length === 0) return OPEN
  const { queues, credentials, clock, log, stop } = deps
  const features = watchFeatures(deps.features ?? listedFeatures(queues, openTrustedKeys(credentials, log), clock), {
    log,
    everyMs: READ_MS,
  })
  const waitMs = deps.featureWaitMs ?? WAIT_MS
  return {
    async pass() {
      const missing = () => needed.filter(word => !features.has(word))
      const isPassed = await untilNone(missing, waitMs, deps)
      if (!isPassed && !stop.aborted) throw new ConfigError(notUnderstood(sent, missing()))
    },
    close: features.close,
  }
}

function notUnderstood({ recordKind }: Sent, missing: readonly Feature[]): string {
  const owners = recordKind === 'reference' ? 'the release of owners' : 'on_file, which the profile gives'
  const what = missing.includes('on_file') ? owners : '--on-conflict newest'
  return `not every live worker understands ${what}: upgrade all workers to this release, then run the same command again`
}

/** Waits until no feature is missing. The time limit `ms` counts from the moment at which a worker listens. */
async function untilNone(missing: () => Feature[], ms: number, deps: FileRunDeps): Promise<boolean> {
  const { queues, stop, stream, giveUpAfterMs = Number.POSITIVE_INFINITY } = deps
  const began = performance.now()
  let until = began + ms
  let isTold = false
  let isTellingDue = true
  for (let look = 0; missing().length > 0 && !stop.aborted; look += 1) {
    const isOver = performance.now() >= until
    const isCounted = isOver || look % LOOKS_PER_COUNT === 0
    if (isCounted && (await queues.workersOf('token-batch').catch(() => undefined)) === 0) {
      const waitedMs = performance.now() - began
      if (waitedMs > giveUpAfterMs) throw nobodyListened(giveUpAfterMs)
      if (waitedMs > ms && !isTold) tellTo(stream)(NOBODY)
      isTold ||= waitedMs > ms
      until = performance.now() + ms
    } else if (isOver) return false
    else if (isTellingDue && performance.now() - began >= TELL_MS) {
      isTellingDue = false
      const words = missing().join(' and ')
      tellTo(stream)(`waiting until every live worker says that it understands ${words} (at most ${ms / 1000} s) ...`)
    }
    await sleep(LOOK_MS)
  }
  return missing().length === 0
}

function nobodyListened(ms: number): FileError {
  const what = `No worker listened on token-batch for ${ms / 1000} s (--give-up-after).`
  return new FileError('input', what, 'Start workers, then run the same command again.')
}

const OWNER_FIELD = /(^|\.)on_file$/

/**
 * The error for an answer of a worker of an older release, which took the chunk before the gate could know of that
 * worker: it rejected rows because they name owners, and their receipts keep that. A dry run has no receipts.
 */
export function olderWorkerError(
  { records = [] }: Result,
  { number, batchId, dryRun }: { number: number | undefined; batchId: string; dryRun: boolean },
): ConfigError | undefined {
  const refused = records.filter(
    ({ outcome, reason, field = '' }) =>
      outcome === 'REJECTED' && reason === 'field_unknown' && OWNER_FIELD.test(field),
  )
  if (refused.length === 0) return undefined
  const what = `a worker of an older release rejected ${refused.length} rows of chunk ${number} of batch ${batchId}, because it does not understand on_file`
  const again = dryRun
    ? 'run the same command again'
    : 'run the file with --again: the same command would read these rejections from their receipts. Rows that were done come back UNCHANGED'
  return new ConfigError(`${what}: upgrade all workers to this release, then ${again}`)
}
