// The progress names rows without an answer that later rows have passed, once that takes long.
import { expect, it } from 'vitest'
import { openAwaited } from '../../../../producers/migrate/chunk/awaited.ts'
import type { RowChunk } from '../../../../producers/rows/chunks.ts'

const chunk = (position: number, lines: { line: number; fileLine?: number }[]) =>
  ({ position, number: position, rows: lines, isLast: false }) as unknown as RowChunk

it('names the lines and the time, from when they were passed until they are answered', () => {
  let now = 1_000
  const awaited = openAwaited(() => now)
  expect(awaited.text()).toBeUndefined()
  awaited.see(chunk(3, [{ line: 302 }, { line: 303 }, { line: 401 }]))
  now += 4_999
  expect(awaited.text()).toBeUndefined()
  awaited.see(chunk(3, [{ line: 302 }, { line: 401 }]))
  now += 62_001
  expect(awaited.text()).toBe('no answer for lines 302 to 401 for 1 min 7 s, later lines go on')
  awaited.see(
    chunk(4, [
      { line: 402, fileLine: 804 },
      { line: 501, fileLine: 1002 },
    ]),
  )
  expect(awaited.text()).toBeUndefined()
  now += 6_000
  expect(awaited.text()).toBe('no answer for lines 804 to 1002 for 6 s, later lines go on')
  awaited.see(undefined)
  expect(awaited.text()).toBeUndefined()
})
