// How a provider slows a process: named from the first sign, for a minute after the last, and until the full rate is back.
import { expect, it } from 'vitest'
import { noteSign, slowdownOf } from '../../src/scheme/slowdown.ts'

const FREE = { isResting: false, isBelowLimit: false }
const CUT = { isResting: false, isBelowLimit: true }
const HELD = { isResting: true, isBelowLimit: false }
const SECOND = 1_000

it('is nothing without a sign, whatever the rate', () => {
  for (const present of [FREE, CUT, HELD]) expect(slowdownOf(undefined, present, 5)).toBeUndefined()
})

it('is told for a minute after one 429 that hardly changed the rate', () => {
  const signs = noteSign(undefined, 'throttled', FREE, 0)
  expect(slowdownOf(signs, FREE, 59 * SECOND)).toEqual({ by: 'throttled', forMs: 59 * SECOND })
  expect(slowdownOf(signs, FREE, 60 * SECOND)).toBeUndefined()
})

it('is told until the full rate is back', () => {
  const signs = noteSign(undefined, 'throttled', FREE, 0)
  expect(slowdownOf(signs, CUT, 600 * SECOND)).toEqual({ by: 'throttled', forMs: 600 * SECOND })
})

it('began with the first of many signs, and anew after it had ended', () => {
  const first = noteSign(undefined, 'throttled', FREE, 0)
  const second = noteSign(first, 'failing', CUT, 50 * SECOND)
  expect(slowdownOf(second, CUT, 70 * SECOND)).toEqual({ by: 'failing', forMs: 70 * SECOND })
  const later = noteSign(second, 'throttled', FREE, 300 * SECOND)
  expect(slowdownOf(later, FREE, 301 * SECOND)).toEqual({ by: 'throttled', forMs: SECOND })
})

it('is said to be the breaker’s while that holds calls back', () => {
  const signs = noteSign(undefined, 'failing', HELD, 0)
  expect(slowdownOf(signs, HELD, 600 * SECOND)).toEqual({ by: 'breaker_open', forMs: 600 * SECOND })
  expect(slowdownOf(signs, FREE, SECOND)).toEqual({ by: 'failing', forMs: SECOND })
})
