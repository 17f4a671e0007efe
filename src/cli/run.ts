// The long-running roles: `start` (all of them in the foreground), `workers` and `scheduler`. A gateway comes with a
// later release.
import { type Command, InvalidArgumentError } from 'commander'
import { measureQueues } from '../../workers/gauges.ts'
import { startHousekeeping } from '../../workers/housekeeping.ts'
import { supervise, WorkerEnded } from '../../workers/supervise.ts'
import { systemClock } from '../clock.ts'
import { KINDS, type Kind } from '../job/catalogue.ts'
import { untilSignal } from '../lifetime.ts'
import { openMetrics } from '../metrics.ts'
import { openOps } from '../ops.ts'
import { readCount } from './command.ts'
import { ensureDevClient } from './dev-client.ts'
import { Stop } from './exit.ts'
import { WORKER_SCRIPT } from './local-workers.ts'
import { openCommandStore, openQueues, openSession, openVault, type Session } from './open.ts'
import { say, type Terminal } from './terminal.ts'

interface WorkersOptions {
  kinds?: Kind[]
  concurrency?: number
}

export function registerRun(program: Command, terminal: Terminal): void {
  program
    .command('start')
    .description('workers and scheduler in the foreground; with neither URL set, on the embedded engine')
    .action(() => runRole(terminal, 'start', start))
  program
    .command('workers')
    .description('worker processes: one for interactive kinds, one per core for bulk kinds')
    .option('--kinds <list>', 'only these kinds, comma-separated', readKinds)
    .option('--concurrency <n>', 'jobs at once, per kind and process', readCount)
    .action((options: WorkersOptions) => runRole(terminal, 'workers', session => work(session, options)))
  program
    .command('scheduler')
    .description('what is done by the clock: retention, the failed set, reply queues that nobody reads')
    .action(() => runRole(terminal, 'scheduler', schedule))
}

function readKinds(text: string): Kind[] {
  const named = text.split(',')
  const unknown = named.find(kind => !(KINDS as readonly string[]).includes(kind))
  if (unknown !== undefined) throw new InvalidArgumentError(`Kinds are ${KINDS.join(', ')}.`)
  return named as Kind[]
}

/** Opens, runs until a signal, closes in reverse. */
async function runRole(terminal: Terminal, role: string, run: (session: Session) => Promise<void>): Promise<void> {
  const session = openSession(terminal, role)
  try {
    await run(session)
    const signal = await untilSignal()
    session.log.info({ signal }, 'closing')
  } finally {
    await session.lifetime.close()
  }
}

async function start(session: Session): Promise<void> {
  const { terminal, config } = session
  const { database } = await openVault(session)
  if (database.embedded) {
    const dev = await ensureDevClient(session)
    if (dev.made) say(terminal, `A client to try things with: ${dev.path}`)
  }
  await work(session, {})
  await schedule(session)
  const engine = config.redisUrls ? 'Redis' : 'PostgreSQL'
  say(terminal, `tokenmill runs: workers and scheduler, queues on ${engine}. Ctrl-C ends it.`)
  if (!database.embedded) return
  say(terminal, 'Try, in another terminal in this folder:')
  say(
    terminal,
    "  printf 'card_number,expiry\\n4111111111111111,12/30\\n' > cards.csv && npx tokenmill migrate cards.csv",
  )
}

async function work(session: Session, { kinds, concurrency }: WorkersOptions): Promise<void> {
  const { log, lifetime, config, terminal } = session
  // Said here once, in one line, instead of by every child.
  await openVault(session)
  const workers = supervise({
    log,
    kinds,
    concurrency,
    processes: config.processes,
    script: WORKER_SCRIPT,
    env: terminal.env,
  })
  lifetime.onClose('workers', () => workers.close())
  await workers.ready.catch(error => {
    throw error instanceof WorkerEnded
      ? new Stop('a worker process could not start; its line above says why', error.code)
      : error
  })
}

async function schedule(session: Session): Promise<void> {
  const { log, lifetime, config } = session
  const { store, database } = await openCommandStore(session)
  const queues = await openQueues(session, database)
  const deps = { store, queues, log, clock: systemClock }
  lifetime.onClose('housekeeping', startHousekeeping(deps, config))
  const metrics = openMetrics('scheduler')
  metrics.collectProcess()
  const ops = await openOps({
    host: config.httpHost,
    port: config.metricsPort ?? 9464,
    metrics,
    notReady: async () => {
      const asked = await Promise.allSettled([store.query({ text: 'select 1' }), queues.ping()])
      return asked.flatMap((one, index) =>
        one.status === 'rejected'
          ? [index === 0 ? 'the store does not answer' : 'the queue server does not answer']
          : [],
      )
    },
    collect: measureQueues({ ...deps, metrics }, KINDS),
  })
  lifetime.onClose('ops', ops.close)
  log.info({ opsPort: ops.port }, 'scheduling')
}
