// What docs/sign-off/total.py does with the form of its input. total.test.ts compares its totals with those of the vault.
import { spawnSync } from 'node:child_process'
import { createHash, createHmac } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'

const RECIPE = fileURLToPath(new URL('../../../docs/sign-off/total.py', import.meta.url))
const KEY = Buffer.alloc(32, 7)
const ROWS = 'number,expiry,reference\n4111111111111111,203112,"a\nb"\n\n4111111111111111,203201,c\n'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'total-recipe-'))
  await writeFile(join(folder, 'key.txt'), `${KEY.toString('hex')}\n`)
})
afterAll(() => rm(folder, { recursive: true }))

async function compute(input: string, leaveOut: number) {
  const path = join(folder, 'left-out.csv')
  await writeFile(path, `line\n${leaveOut}\n`)
  const args = [RECIPE, '--key', join(folder, 'key.txt'), '--leave-out', path]
  return spawnSync('python3', args, { input, encoding: 'utf8' })
}

const digest = (expiry: string, reference: string) =>
  createHmac('sha256', KEY).update(`4111111111111111\n${expiry}\n${reference}`).digest('hex')
const sumOf = (...digests: string[]) => ({
  rows: digests.length,
  sha256: createHash('sha256')
    .update(
      digests
        .sort()
        .map(text => `${text}\n`)
        .join(''),
    )
    .digest('hex'),
})

it('numbers a row by the first of its lines, as results do', async () => {
  const [first, second] = [digest('203112', 'a\nb'), digest('203201', 'c')]
  const sums = { 2: sumOf(second), 3: sumOf(first, second), 4: sumOf(first, second), 5: sumOf(first) }
  for (const [line, sum] of Object.entries(sums))
    expect(JSON.parse((await compute(ROWS, Number(line))).stdout), `line ${line}`).toMatchObject(sum)
})

it('computes nothing of rows with fewer fields than the header', async () => {
  const { status, stderr } = await compute('number,expiry,reference\n4111111111111111,203112\n', 9)
  expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining('line 2') })
})
