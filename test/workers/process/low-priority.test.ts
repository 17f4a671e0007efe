// Linux may group processes by session, and each worker process begins a session of its own: then only the priority of that
// session counts. It is lowered for bulk work.
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, it } from 'vitest'
import type { WorkerRole } from '../../../workers/process/worker-settings.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'

const read = (path: string) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
const isGrouped = /^1$/m.test(read('/proc/sys/kernel/sched_autogroup_enabled'))

describeStore('the session of a worker process', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(async () => {
    await installation?.close()
  })

  /** Waits until the session's group of the worker process has this priority, 0 being the usual one. */
  async function expectPriority(role: WorkerRole, lockSeconds: string, priority: number): Promise<void> {
    const workers = await installation.startWorkers({ roles: [role], env: { TOKENMILL_LOCK_SECONDS: lockSeconds } })
    // The process tells that it is ready before it changes its priority, and replies to this afterwards.
    await workers.snapshots()
    const [pid] = readdirSync('/proc').filter(name => isWorkerOfThisTest(name))
    const hasPriority = () => read(`/proc/${pid}/autogroup`).trimEnd().endsWith(` nice ${priority}`)
    await until(hasPriority, { what: `the priority ${priority} of ${role}` }).finally(workers.close)
  }

  it.runIf(isGrouped)('has a low priority where it does bulk work', async () => {
    await expectPriority('bulk', '60', 10)
    await expectPriority('interactive', '60', 0)
  })

  it.runIf(isGrouped)('keeps the usual priority where locks must be renewed soon', async () => {
    await expectPriority('bulk', '4', 0)
  })
})

function isWorkerOfThisTest(name: string): boolean {
  const stat = read(`/proc/${name}/stat`)
  const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  return parent === process.pid && read(`/proc/${name}/cmdline`).includes('worker-process')
}
