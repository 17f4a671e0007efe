// Worker processes as children of a command, for the embedded engine, where perhaps no other process works the
// command's jobs.
import { CATALOGUE } from '../../src/job/composition.ts'
import { scriptBeside } from '../../src/script.ts'
import { type Supervised, supervise } from '../../workers/process/supervise.ts'
import { type Session, withQueues } from '../open/open.ts'

export const WORKER_SCRIPT = scriptBeside(import.meta.url, 'worker-process')

/** Starts the worker processes. Resolves when all of them are working; they end with the session. */
export async function startLocalWorkers(
  session: Session,
  roles: readonly ('interactive' | 'bulk')[],
): Promise<Supervised> {
  const { config, log, lifetime, terminal } = session
  const workers = supervise({
    log,
    catalogue: CATALOGUE,
    roles,
    processes: config.processes,
    script: WORKER_SCRIPT,
    withQueues: work => withQueues(session, work),
    env: { ...terminal.env, TOKENMILL_LOG_LEVEL: quietLevel(terminal.env) },
  })
  lifetime.onClose('workers', () => workers.close())
  await workers.ready
  return workers
}

/** The workers of a command log only errors unless a level is set. */
function quietLevel(env: NodeJS.ProcessEnv): string {
  return env['TOKENMILL_LOG_LEVEL'] || 'error'
}
