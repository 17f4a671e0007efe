// The metrics that a supervisor shows of worker processes that work, have ended, or hang.

import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CATALOGUE } from '../../src/job/composition.ts'
import { openLog } from '../../src/log.ts'
import { type MetricsRegistry, openRegistry, pageOf } from '../../src/metrics.ts'
import { type Supervised, supervise } from '../../workers/process/supervise.ts'
import { until } from '../support/until.ts'

let registry: MetricsRegistry
let workers: Supervised

beforeAll(async () => {
  registry = openRegistry({ role: 'workers' })
  const script = fileURLToPath(new URL('worker.ts', import.meta.url))
  const processes = { bulk: 2, interactive: 2 }
  workers = supervise({
    log: openLog('silent'),
    catalogue: CATALOGUE,
    script,
    withQueues: work => work({ handBack: async () => 0 }),
    processes,
    registry,
  })
  await workers.ready
})
afterAll(async () => {
  await workers?.close()
})

const page = async () => {
  const told = await workers.snapshots()
  return pageOf([...told, await registry.snapshot()])
}
const readValue = (text: string, name: string, process: string) =>
  new RegExp(`^tokenmill_${name}\\{[^}]*process="${process}"\\} (\\S+)$`, 'm').exec(text)?.[1]
const pidOf = async (process: string) => {
  const reasons = await workers.reasons()
  return Number(reasons.find(reason => reason.startsWith(`${process}: `))?.slice(process.length + 2))
}

it('gathers the metrics of all its processes on one page, each under its name', async () => {
  const text = await page()
  for (const process of ['interactive-0', 'interactive-1', 'bulk-0', 'bulk-1']) {
    expect(readValue(text, 'build_info', process)).toBe('1')
    expect(readValue(text, 'test_ratio', process)).toBe('Nan')
    expect(readValue(text, 'worker_process_up', process)).toBe('1')
    expect(readValue(text, 'worker_process_ends_total', process)).toBe('0')
  }
  expect(text.match(/^# TYPE tokenmill_build_info /gm)).toHaveLength(1)
})

it('counts a process that ended, and shows that it is down until another one works', async () => {
  process.kill(await pidOf('bulk-1'), 'SIGKILL')
  await until(async () => readValue(await page(), 'worker_process_up', 'bulk-1') === '0', { what: 'down' })
  expect(await workers.reasons()).toContain('bulk-1: it does not answer')
  const text = await page()
  expect([
    readValue(text, 'worker_process_up', 'bulk-0'),
    readValue(text, 'worker_process_ends_total', 'bulk-1'),
  ]).toEqual(['1', '1'])
  await until(async () => readValue(await page(), 'worker_process_up', 'bulk-1') === '1', { what: 'up' })
})

it('waits for no process that hangs, and shows the others', async () => {
  const pid = await pidOf('interactive-0')
  process.kill(pid, 'SIGSTOP')
  try {
    const text = await page()
    expect(readValue(text, 'worker_process_up', 'interactive-0')).toBe('0')
    expect(readValue(text, 'build_info', 'bulk-0')).toBe('1')
  } finally {
    process.kill(pid, 'SIGCONT')
  }
})
