// Whether work is flowing: jobs waiting in queues, results waiting to be published, failed jobs, and scheduled runs.
import { type Catalogue, FAILED_QUEUE, resultsQueue } from '../../../src/job/catalogue.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import * as clients from '../../../src/store/access/clients.ts'
import * as outbox from '../../../src/store/job/outbox.ts'
import type { Db } from '../../../src/store/pool.ts'
import { dueRuns, entitiesOf } from '../../../src/store/report/new-runs.ts'
import * as scheduleRuns from '../../../src/store/report/schedule-runs.ts'
import * as schedules from '../../../src/store/report/schedules.ts'
import { count, duration } from '../../../src/units.ts'
import { critical, type Verdict, warning, well } from '../check.ts'

const WAIT_MS = { urgent: { warning: 10_000, critical: 60_000 }, others: { warning: 3_600_000 } } as const
const OUTBOX_MS = { warning: 60_000, critical: 300_000 } as const
const SHOWN_MAX = 5
const FAILED_RUN_MS = 24 * 3_600_000

export interface WorkSources {
  store(): Promise<Db>
  queues(): Promise<Queues>
  catalogue: Catalogue
  /** ms since the epoch. */
  now: number
  scheduleLateMs: number
  /** Queues with unpublished results, oldest first, for whoever asks often. Undefined: the store is asked. */
  unpublished?: (() => ReturnType<typeof outbox.pendingAnswers>) | undefined
}

interface Wait {
  kind: string
  /** Somebody waits for jobs of this kind. */
  urgent: boolean
  waiting: number
  active: number
  /** How long the oldest has waited, in ms. */
  oldestMs: number
}

export async function askBacklog(sources: WorkSources): Promise<Verdict> {
  const { catalogue } = sources
  const queues = await sources.queues()
  const waits = await Promise.all(
    catalogue.kinds.map(async kind => {
      const { waiting, active } = await queues.depth(kind)
      const { urgent } = catalogue.entry(kind)
      return { kind, urgent, waiting, active, oldestMs: waiting === 0 ? 0 : ((await queues.oldestMs(kind)) ?? 0) }
    }),
  )
  return judgeBacklog(waits)
}

export function judgeBacklog(waits: readonly Wait[]): Verdict {
  const waiting = waits.filter(one => one.waiting > 0)
  const under = `${count(
    waits.reduce((sum, { active }) => sum + active, 0),
    'job',
  )} in work`
  if (waiting.length === 0) return well(`nothing waits, ${under}`)
  const named = waiting.map(one => `${one.kind} ${one.waiting.toLocaleString('en')} (oldest ${duration(one.oldestMs)})`)
  const says = `${named.join(', ')}; ${under}`
  const longest = (urgent: boolean) =>
    Math.max(0, ...waiting.filter(one => one.urgent === urgent).map(({ oldestMs }) => oldestMs))
  const more = 'look at the workers; start more of them'
  if (longest(true) > WAIT_MS.urgent.critical) return critical(says, more)
  if (longest(true) > WAIT_MS.urgent.warning || longest(false) > WAIT_MS.others.warning) return warning(says, more)
  return well(says)
}

export async function askOutbox(sources: WorkSources): Promise<Verdict> {
  const db = await sources.store()
  const pending = await (sources.unpublished?.() ?? outbox.pendingAnswers(db))
  const rows = pending.reduce((sum, queue) => sum + queue.rows, 0)
  const [first] = pending
  if (!first) return well('every result is published')
  const says = `${count(rows, 'result')} unpublished, the oldest for ${duration(sources.now - first.oldest)}`
  const late = pending.filter(({ oldest }) => sources.now - oldest > OUTBOX_MS.warning)
  if (late.length === 0) return well(says)
  const names = new Map((await clients.list(db)).map(({ clientId, name }) => [clientId, name]))
  const queues = await sources.queues()
  const shown = await Promise.all(
    late.slice(0, SHOWN_MAX).map(async queue => {
      const unread = await unreadOf(queues, queue)
      const who = names.get(queue.clientId) ?? queue.clientId
      return {
        ...queue,
        unread,
        words: `${who}: ${count(queue.rows, 'result')}, ${count(unread, 'more', 'more')} unread`,
      }
    }),
  )
  const words = `${says}; ${shown.map(one => one.words).join('; ')}`
  // A queue stops accepting results some way before its limits, so any unread result may be the reason why others wait.
  const stuck = shown.filter(({ unread }) => unread === 0)
  const ask = 'ask the owners of these clients to read their results queues'
  if (stuck.length === 0) return warning(words, ask)
  const look = 'look at the workers’ log: results are published by them'
  const next = stuck.length < shown.length ? `${look}; where results are unread, ${ask}` : look
  const isCritical = stuck.some(({ oldest }) => sources.now - oldest > OUTBOX_MS.critical)
  return isCritical ? critical(words, next) : warning(words, next)
}

async function unreadOf(queues: Queues, { clientId, replyTo }: { clientId: string; replyTo: string | null }) {
  const { waiting, delayed } = await queues.depth(resultsQueue(clientId, replyTo ?? undefined))
  return waiting + delayed
}

export async function askFailed({ queues, catalogue }: WorkSources): Promise<Verdict> {
  const opened = await queues()
  const failed = await Promise.all(
    catalogue.kinds.map(async kind => ({ kind, jobs: (await opened.depth(FAILED_QUEUE(kind))).waiting })),
  )
  const some = failed.filter(({ jobs }) => jobs > 0)
  if (some.length === 0) return well('the failed set is empty')
  const says = some.map(({ kind, jobs }) => `${kind} ${jobs.toLocaleString('en')}`).join(', ')
  return warning(`jobs that failed for good: ${says}`, '`tokenmill failed list`')
}

export async function askSchedules(sources: WorkSources): Promise<Verdict> {
  const { store, now, scheduleLateMs } = sources
  const db = await store()
  const dueBefore = now - scheduleLateMs
  const troubled = await scheduleRuns.listTroubled(db, { dueBefore, failedSince: now - FAILED_RUN_MS, limit: 100 })
  const missing = await listMissing(db, dueBefore)
  if (troubled.length + missing.length === 0) return well('no run is late, and none failed within 24 h')
  const words = [
    ...troubled.map(({ state, businessDate, scheduleId, reason, dueAt }) => {
      const what = state === 'FAILED' ? `failed (${reason})` : `is late by ${duration(now - dueAt)}`
      return `${businessDate} of ${scheduleId} ${what}`
    }),
    ...missing.map(
      ({ businessDate, scheduleId, dueAt }) =>
        `${businessDate} of ${scheduleId} is late by ${duration(now - dueAt)}: no scheduler began it`,
    ),
  ]
  const named = words.slice(0, SHOWN_MAX)
  const more = words.length > named.length ? ` and ${words.length - named.length} more` : ''
  return critical(`${named.join(', ')}${more}`, '`tokenmill schedule list`; is a scheduler running?')
}

/** Runs that were due by `before` but have no row: no scheduler was running to insert it. */
async function listMissing(db: Db, before: number): Promise<scheduleRuns.NewRun[]> {
  const known = await schedules.list(db)
  const runs = await Promise.all(
    known.map(async schedule => dueRuns(schedule, await entitiesOf(schedule, { store: db }), before)),
  )
  return runs.flat()
}
