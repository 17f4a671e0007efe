// What waits for an older chunk lies in a file of bounded size, is read back as it was, and goes with the run.
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, inject, it } from 'vitest'
import { openWaitingFile } from '../../../../producers/migrate/chunk/waiting-file.ts'
import type { EndedChunk } from '../../../../producers/migrate/output.ts'
import { noFileCounts } from '../../../../producers/rows/file-outcome.ts'

let path: string
beforeEach(async () => {
  path = join(await mkdtemp(join(inject('runDir'), 'waiting-')), 'cards.csv.results.csv.waiting')
})

const chunk = (number: number): EndedChunk => ({
  number,
  isSent: true,
  rows: [
    { line: 2, outcome: 'CREATED', last_four: '1111', reference: 'A' },
    { line: 3, outcome: 'REJECTED', reason: 'pan_luhn', repairs: ['trimmed'], reference_outcome: 'LINKED' },
  ] as EndedChunk['rows'][number][],
  texts: [[`${number} é`, '\n'], [], ['back']],
})
const read = ({ texts, ...more }: EndedChunk) => ({
  ...more,
  texts: texts.map(parts => [...parts].map(String).join('')),
})

it('is read back as it was in any order, without what isn’t counted of a row, and is emptied once all is taken', async () => {
  const waiting = openWaitingFile(path)
  expect(existsSync(path)).toBe(false)
  for (const number of [5, 3, 4]) await waiting.put(number, chunk(number))
  expect(waiting.withRows({ ...noFileCounts(), CREATED: 7 })).toMatchObject({ CREATED: 10, REJECTED: 3, FAILED: 0 })
  expect(statSync(path).mode & 0o777).toBe(0o600)
  for (const number of [3, 4, 5])
    expect(read(await waiting.take(number))).toEqual({
      number,
      isSent: true,
      texts: [`${number} é\n`, '', 'back'],
      rows: [
        { line: 2, outcome: 'CREATED' },
        { line: 3, outcome: 'REJECTED', reason: 'pan_luhn', repairs: ['trimmed'], reference_outcome: 'LINKED' },
      ],
    })
  expect(statSync(path).size).toBe(0)
  expect(waiting.withRows(noFileCounts())).toEqual(noFileCounts())
  await expect(waiting.take(3)).rejects.toThrow('broken law')
  await waiting.put(6, chunk(6))
  expect(read(await waiting.take(6)).texts).toEqual(['6 é\n', '', 'back'])
  await waiting.close()
  expect(existsSync(path)).toBe(false)
})

it('replaces what a run that was killed left, and is full at its bound', async () => {
  writeFileSync(path, 'x'.repeat(10_000))
  const waiting = openWaitingFile(path, { bytesMax: 150 })
  await waiting.put(1, chunk(1))
  expect(statSync(path).size).toBeLessThan(1_000)
  expect(waiting.isFull()).toBe(false)
  await waiting.put(2, chunk(2))
  expect(waiting.isFull()).toBe(true)
  await waiting.take(1)
  await waiting.take(2)
  expect(waiting.isFull()).toBe(false)
  await waiting.close()
})

it('that can’t be written is an error that names it', async () => {
  const waiting = openWaitingFile(join(path, 'in-no-directory'))
  await expect(waiting.put(1, chunk(1))).rejects.toThrow(/in-no-directory cannot be written/)
  await waiting.close()
})
