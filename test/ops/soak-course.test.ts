// The bar of the console's soak: memory that swings isn't taken for a leak, and a leak isn't taken for a swing.
import { expect, it } from 'vitest'
import { growthOf } from '../../bench/soak/course.ts'

const MINUTES = 90

/** The memory of each minute, in MiB: a saw tooth of some minutes, and a leak beneath it. */
function course(leakMiBaMinute: number): number[] {
  return Array.from({ length: MINUTES }, (_none, minute) => 165 + ((minute * 7) % 60) + leakMiBaMinute * minute)
}

it('finds a leak beneath memory that swings', () => {
  expect(growthOf(course(0), 5)).toBeLessThan(1)
  expect(growthOf(course(0.25), 5)).toBeGreaterThan(8)
})

it('leaves out the first minutes', () => {
  expect(growthOf([10, 20, 30, ...Array.from({ length: 20 }, () => 160)], 3)).toBe(0)
})
