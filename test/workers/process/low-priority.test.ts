// Linux may group processes by session, and each worker process begins a session of its own: then only the priority of that
// session counts. It is lowered for bulk work.
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { WorkerRole } from '../../../workers/process/worker-settings.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'

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

  /** The priority of the session's group, 0 being the usual one. */
  async function priorityOf(role: WorkerRole, lockSeconds: string): Promise<number> {
    const workers = await installation.startWorkers({ roles: [role], env: { TOKENMILL_LOCK_SECONDS: lockSeconds } })
    const [pid] = readdirSync('/proc').filter(name => isWorkerOfThisTest(name))
    const [, nice] = /nice (-?\d+)/.exec(read(`/proc/${pid}/autogroup`)) ?? []
    await workers.close()
    return Number(nice)
  }

  it.runIf(isGrouped)('has a low priority where it does bulk work', async () => {
    expect(await priorityOf('bulk', '60')).toBe(10)
    expect(await priorityOf('interactive', '60')).toBe(0)
  })

  it.runIf(isGrouped)('keeps the usual priority where locks must be renewed soon', async () => {
    expect(await priorityOf('bulk', '4')).toBe(0)
  })
})

function isWorkerOfThisTest(name: string): boolean {
  const stat = read(`/proc/${name}/stat`)
  const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  return parent === process.pid && read(`/proc/${name}/cmdline`).includes('worker-process')
}
