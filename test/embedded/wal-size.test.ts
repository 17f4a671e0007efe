import { expect, it } from 'vitest'
import { walSizeFor } from '../../src/embedded/wal-size.ts'

const GiB = 2 ** 30

it.each([
  [500 * GiB, '16384MB'],
  [64 * GiB, '16384MB'],
  [20 * GiB, '5120MB'],
  [1 * GiB, '1024MB'],
])('the WAL of a volume of %i bytes may grow to %s', (volume, size) => {
  expect(walSizeFor(volume)).toBe(size)
})
