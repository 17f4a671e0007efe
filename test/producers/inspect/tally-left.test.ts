// What a tally leaves on the disk where its process ends in the midst.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'

let under: string
beforeAll(async () => {
  under = await mkdtemp(join(tmpdir(), 'tokenmill-tally-'))
})
afterAll(() => rm(under, { recursive: true, force: true }))

it('leaves nothing behind where the process ends before its close', () => {
  const module = new URL('../../../producers/inspect/tally.ts', import.meta.url).href
  const script = `
    import { readdirSync } from 'node:fs'
    const { openTally } = await import(${JSON.stringify(module)})
    const tally = openTally({ memoryBytesMax: 16, under: ${JSON.stringify(under)} })
    tally.add('text')
    console.log(readdirSync(${JSON.stringify(under)}).length)
    process.exit(0)`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  expect(stdout.trim()).toBe('1')
  expect(readdirSync(under)).toEqual([])
})
