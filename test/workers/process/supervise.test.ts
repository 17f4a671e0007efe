// A worker process that is killed while it starts is started again.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { openLog } from '../../../src/log.ts'
import { supervise } from '../../../workers/process/supervise.ts'

const script = fileURLToPath(new URL('../../support/scripts/dying-at-start.ts', import.meta.url))

it('a worker process that is killed before it works is started again, and then all are ready', async () => {
  const mark = join(mkdtempSync(join(tmpdir(), 'tokenmill-supervise-')), 'died')
  const env = { ...process.env, TEST_DIED: mark }
  const workers = supervise({ log: openLog('silent'), script, roles: ['interactive'], env })
  onTestFinished(() => workers.close())
  await workers.ready
  expect(await Promise.race([workers.ended, Promise.resolve('works')])).toBe('works')
})
