// An installation in which everything runs, with something to see on each page of views.ts.
import { randomUUID } from 'node:crypto'
import { openSession, type Session } from '../../../../cli/open/open.ts'
import { startScheduler } from '../../../../cli/process/scheduler.ts'
import { addDisplay } from '../../../../src/acts/display.ts'
import { jobId, receiptId } from '../../../../src/job/envelope/ids.ts'
import { dateOf, dayAfter } from '../../../../src/job/schedule/business-dates.ts'
import { openLog } from '../../../../src/log.ts'
import type { Queues } from '../../../../src/queue/engine.ts'
import { openRedis } from '../../../../src/queue/open-redis.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { until } from '../../../support/until.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, PREFIX } from '../bundle.ts'

export interface World {
  bundle: ConsoleBundle
  redis: RedisServer
  scheduler: Session
  cookies: Record<'whole' | 'limited' | 'wall' | 'ourWall', string>
  /** Numbers of batches. */
  running: number
  open: number
  finished: number
  /** The id of a schedule; paths of its runs and of jobs. */
  schedule: string
  run: string
  due: string
  inWork: string
  decided: string
  /** What workers write every few seconds where there is work: the batch goes on, and a network is called. */
  work(): Promise<void>
  close(): Promise<void>
}

export async function openWorld(): Promise<World> {
  const redis = await startRedis()
  const bundle = await openConsoleBundle({ REDIS_URL: redis.url, TOKENMILL_LOG_LEVEL: 'silent' })
  // Holds its job over a stall of this process, after which others would take it from a worker of the installation.
  const holder = await openRedis([redis.url], { prefix: PREFIX, lockMs: 600_000, log: openLog('silent') })
  const inWork = await holdJob(bundle, holder)
  const { env } = bundle.installation
  const terminal = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }
  const scheduler = openSession({ env, ...terminal }, 'scheduler')
  await Promise.all([bundle.installation.startWorkers(), startScheduler(scheduler)])
  const batches = await addBatches(bundle)
  return {
    bundle,
    redis,
    scheduler,
    inWork,
    cookies: await addCookies(bundle),
    ...batches,
    ...(await addSchedule(bundle)),
    decided: await decideJob(bundle),
    work: () => work(bundle, [batches.running, batches.open]),
    async close() {
      await scheduler.lifetime.close()
      await holder.close()
      await bundle.close()
      await redis.stop()
    },
  }
}

async function addCookies(bundle: ConsoleBundle): Promise<World['cookies']> {
  const addWall = async (name: string, entities: string[] | null) => {
    const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
    const ended = await addDisplay(bundle.installation.vault.store, { name, entities }, by)
    if ('refused' in ended) throw new Error(ended.refused)
    return `tokenmill-display=${ended.done.value}`
  }
  return {
    whole: (await bundle.addPerson('ada')).cookie,
    limited: (await bundle.addPerson('bea', { entities: [OURS] })).cookie,
    wall: await addWall('all', null),
    ourWall: await addWall('ours', [OURS]),
  }
}

/** A job that a worker has for as long as it likes. It takes the job before others can. */
async function holdJob({ installation }: ConsoleBundle, queues: Queues): Promise<string> {
  const { credentials } = installation
  const client = await installation.connect()
  const kind = 'token-lifecycle'
  const worker = queues.work(
    kind,
    (_, signal) =>
      new Promise(resolve => signal.addEventListener('abort', () => resolve({ deferMs: 60_000 }), { once: true })),
    { concurrency: 1 },
  )
  await worker.ready
  await client.submit(kind, { id: 't00000000000000000000000000', action: 'SUSPEND' }, { jti: 'held' })
  await until(() => worker.active() === 1, { what: 'the job in work' })
  const { clientId } = credentials.signingKey
  return `/explain/jobs/${receiptId(clientId, 'held')}?job=${jobId(clientId, 'held')}`
}

async function decideJob({ installation }: ConsoleBundle): Promise<string> {
  const client = await installation.connect()
  const card = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030, cardholderName: 'ANNA MEYER' }
  const request = { token_scope: installation.scope, ...(await client.encryptCard(card)) }
  await client.call('token-create', request, { jti: 'decided' })
  return `/explain/jobs/${receiptId(client.clientId, 'decided')}`
}

async function addBatches(bundle: ConsoleBundle): Promise<Pick<World, 'running' | 'open' | 'finished'>> {
  const begun = `created_at = now() - interval '1 hour'`
  const running = await bundle.addBatch({
    batchId: 'autumn',
    extentRows: 90_000,
    rowsDone: 4_000,
    more: `${begun}, extent_chunks = 90, chunks_done = 4, active_at = now()`,
  })
  const finished = await bundle.addBatch({
    batchId: 'summer',
    rowsDone: 1_000,
    counts: { CREATED: 1_000 },
    more: `${begun}, chunks_done = 1, finished_at = now(), revision = 1`,
  })
  const open = await bundle.addBatch({ batchId: 'winter', extentRows: null, more: `${begun}, active_at = now()` })
  return { running, open, finished }
}

async function work({ rows }: ConsoleBundle, batches: readonly number[]): Promise<void> {
  await rows('update tokenmill.batch set active_at = now() where batch_no = any($1)', [batches])
  await rows(
    `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code, batch_no,
  chunk, counts, revision, attempt, accepted_at, completed_at)
select gen_random_uuid(), current_date, 'c', 'c', 'token-batch', gen_random_uuid(), '', '', 'SUCCEEDED', 200, no, 3, '{"CREATED": 100}',
  1, 1, now(), now() from unnest($1::int[]) as no`,
    [batches],
  )
  await rows(
    `insert into tokenmill.scheme_rate (provider, process, interactive, wanted_interactive, wanted_bulk, given, beat, granted, renewed_at)
values ('visa', '33333333-3333-4333-8333-333333333333', true, 1, 1, 1, 1, 10, now())
on conflict (provider, process) do update set renewed_at = now()`,
  )
}

/** A schedule with a run that ended well, one whose report is being made, and one that is due. */
async function addSchedule({ installation, rows }: ConsoleBundle): Promise<Pick<World, 'schedule' | 'run' | 'due'>> {
  const { clientId } = installation.credentials.signingKey
  const schedule = randomUUID()
  await rows(
    `insert into tokenmill.schedule (schedule_id, kind, client_id, report_type, entity_id, mime_type, time, zone, created_at)
values ($1, 'report', $2, 'INVOICE', $3, 'text/csv', '02:00', 'Europe/Berlin', now())`,
    [schedule, clientId, OURS],
  )
  const addRun = async (state: 'SUCCEEDED' | 'QUEUED' | 'DUE', ago: number, report: string | null = null) => {
    const date = dayAfter(dateOf(Date.now()), -ago)
    const isOver = state === 'SUCCEEDED'
    // The scheduler looks at an open one in an hour.
    await rows(
      `insert into tokenmill.schedule_run (schedule_id, business_date, entity_id, state, due_at, next_at, ended_at, receipt_id)
values ($1, $2, $3, $4, now() - interval '1 minute', case when $5 then null else now() + interval '1 hour' end,
  case when $5 then now() end, $6)`,
      [schedule, date, OURS, state, isOver, report],
    )
    return `/reports/runs/${schedule}/${date}/${OURS}`
  }
  const report = randomUUID()
  await rows(
    `insert into tokenmill.report (report_uid, report_type, report_parameter, mime_type, report_entity_uid, status, client_id, request_key)
values ($1, 'INVOICE', '{}', 'text/csv', $2, 'PROCESSING_STARTED', 'c', 'k')`,
    [report, OURS],
  )
  await addRun('SUCCEEDED', 3)
  return { schedule, run: await addRun('QUEUED', 2, report), due: await addRun('DUE', 1) }
}
