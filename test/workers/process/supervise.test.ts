// A worker process that is killed while it starts is started again, and its jobs are handed back.

import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { openLog } from '../../../src/log.ts'
import { supervise } from '../../../workers/process/supervise.ts'
import { kindsOf } from '../../../workers/process/worker-settings.ts'

const script = fileURLToPath(new URL('../../support/scripts/dying-at-start.ts', import.meta.url))

it('a worker process that is killed before it works is started again, its jobs are handed back, and all are ready', async () => {
  const mark = join(mkdtempSync(join(tmpdir(), 'tokenmill-supervise-')), 'died')
  const env = { ...process.env, TEST_DIED: mark }
  const handedBack: string[] = []
  const handBack = async (queue: string, processId: string) => handedBack.push(`${queue} ${processId}`)
  const roles = ['interactive'] as const
  const processes = { interactive: 1 }
  const workers = supervise({
    log: openLog('silent'),
    catalogue: CATALOGUE,
    script,
    roles,
    processes,
    env,
    withQueues: work => work({ handBack }),
  })
  onTestFinished(() => workers.close())
  await workers.ready
  expect(await Promise.race([workers.ended, Promise.resolve('works')])).toBe('works')
  const died = readFileSync(mark, 'utf8')
  expect(died).toMatch(/^[0-9a-f-]{36}$/)
  const ofDied = kindsOf(CATALOGUE, 'interactive').map(kind => `${kind} ${died}`)
  expect([...new Set(handedBack)]).toEqual(ofDied)
  await workers.close()
  // A process that ends because it was asked to keeps no job.
  expect([...new Set(handedBack)]).toEqual(ofDied)
})
