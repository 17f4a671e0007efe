// Processes with bulk work lower their priority. Linux may group processes by session, and each worker process begins a session
// of its own: then only the priority of that session counts, which is lowered, too.
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { lowerPriority } from '../../../src/low-priority.ts'
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

it('a process keeps the usual priority where locks must be renewed soon', () => {
  const usual = getPriority()
  for (const lockMs of [3_000, 59_999]) lowerPriority(lockMs)
  expect(getPriority()).toBe(usual)
})

describeStore('a worker process', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(async () => {
    await installation?.close()
  })

  /** Waits until the worker process and its session's group have these priorities, 0 being the usual one. */
  async function expectPriority(role: WorkerRole, lockSeconds: string, own: number, priority: number): Promise<void> {
    const workers = await installation.startWorkers({ roles: [role], env: { TOKENMILL_LOCK_SECONDS: lockSeconds } })
    // The process tells that it is ready before it changes its priority, and replies to this afterwards.
    await workers.snapshots()
    const [pid] = readdirSync('/proc').filter(name => isWorkerOfThisTest(name))
    const hasPriority = () => read(`/proc/${pid}/autogroup`).trimEnd().endsWith(` nice ${priority}`)
    await until(hasPriority, { what: `the priority ${priority} of ${role}` })
      .then(() => expect(getPriority(Number(pid))).toBe(own))
      .finally(workers.close)
  }

  it.runIf(isGrouped)('has a low priority where it does bulk work', async () => {
    await expectPriority('bulk', '60', 19, 10)
    await expectPriority('interactive', '60', 0, 0)
  })

  it.runIf(isGrouped)('keeps the usual priority where locks must be renewed soon', async () => {
    await expectPriority('bulk', '4', 0, 0)
  })
})

function isWorkerOfThisTest(name: string): boolean {
  const stat = read(`/proc/${name}/stat`)
  const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  return parent === process.pid && read(`/proc/${name}/cmdline`).includes('worker-process')
}
