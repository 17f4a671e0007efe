// The core alone, in a tree that has nothing else: it compiles, and its tests pass there.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { FEATURES, type FeatureName } from '../law/features.ts'
import { childEnvironment, killAtExit } from '../support/process.ts'
import { addTests, compile, writeWithout } from './product.ts'

/** They name no kind of a feature. */
const TESTS = [
  'test/producers/gateway/tokens/conformance.test.ts',
  'test/producers/gateway/batches/batches.test.ts',
  'test/producers/client/jobs.test.ts',
  'test/workers/token.test.ts',
  'test/workers/set/write-set.test.ts',
  'test/workers/line/bisect.test.ts',
  'test/workers/process/cell.test.ts',
  'test/security/failed-copies.test.ts',
  'test/chaos/steps.test.ts',
  'test/chaos/sets.test.ts',
  'test/chaos/receipts.test.ts',
  'test/cli/start.test.ts',
]

let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'core-'))
  writeWithout(Object.keys(FEATURES) as FeatureName[], folder)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('compiles', async () => {
  expect(await compile(folder)).toEqual([])
})

it('passes its tests', async () => {
  addTests(TESTS, folder)
  const child = spawn(join(folder, 'node_modules/.bin/node'), ['bin/launch.mjs', 'test/run.ts', ...TESTS], {
    cwd: folder,
    env: childEnvironment({}),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  killAtExit(child)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', part => (said += part))
  const status = await new Promise(done => child.once('close', done))
  expect(status, said.slice(-5_000)).toBe(0)
  expect(said).toMatch(/\b[1-9]\d* passed, 0 failed/)
})
