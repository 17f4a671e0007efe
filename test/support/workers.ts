// Runs workers in the test's own process, because a worker process needs about a second of processor time to start.
// Tests that kill workers, count processes, make workers misbehave or let several compete start processes
// (`startWorkers` in installation.ts).

import { randomUUID } from 'node:crypto'
import { openSession } from '../../cli/open/open.ts'
import { WORKER_SCRIPT } from '../../cli/process/local-workers.ts'
import { type KeyTimes, openWorker } from '../../cli/process/worker-process.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import type { Snapshot } from '../../src/metrics.ts'
import { startWorkers } from '../../workers/main.ts'
import type { Supervised } from '../../workers/process/supervise.ts'
import { readWorkerSettings, type WorkerRole, workerEnv } from '../../workers/process/worker-settings.ts'

/**
 * The URL of a session with the rights of a worker's database user: so every test of workers shows that these rights
 * suffice. No user is made for each test, because users belong to the whole server.
 */
export function asWorker(url: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}options=-c%20role%3Dtokenmill_worker`
}

export type OpenedWorkers = Pick<Supervised, 'snapshots' | 'close'>

/** Opens one worker process's work for each of these roles. */
export async function openWorkers(env: NodeJS.ProcessEnv, roles: readonly WorkerRole[]): Promise<OpenedWorkers> {
  const opened: OpenedWorker[] = []
  const close = async () => {
    await Promise.all(opened.map(one => one.close()))
  }
  try {
    for (const role of roles) opened.push(await openOne(env, role))
  } catch (error) {
    await close()
    throw error
  }
  return { snapshots: () => Promise.all(opened.map(one => one.snapshot())), close }
}

/** Short intervals, in ms, because tests that replace keys wait for them. */
const TIMES: Required<KeyTimes> = { watchMs: 500, followMs: 500, beatMs: 500 }

interface OpenedWorker {
  snapshot(): Promise<Snapshot>
  close(): Promise<void>
}

async function openOne(around: NodeJS.ProcessEnv, role: WorkerRole): Promise<OpenedWorker> {
  const own = {
    role,
    name: `${role}-0`,
    place: randomUUID(),
    processId: randomUUID(),
    kinds: undefined,
    concurrency: undefined,
  }
  const env = { ...around, ...workerEnv(own) }
  const worker = readWorkerSettings(env, CATALOGUE)
  const { stdin, stdout, stderr } = process
  const session = openSession({ env, stdin, stdout, stderr }, `worker-${role}`)
  try {
    const opened = await openWorker(session, worker, TIMES)
    const { snapshot } = await startWorkers(opened, {
      worker,
      cell: { script: WORKER_SCRIPT, env },
      beatMs: TIMES.beatMs,
    })
    return { snapshot, close: () => session.lifetime.close() }
  } catch (error) {
    await session.lifetime.close()
    throw error
  }
}
