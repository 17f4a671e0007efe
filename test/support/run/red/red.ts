// Fails on purpose, for the test of what a red run prints.
import { afterAll, describe, expect, it } from 'vitest'

describe('a red test', () => {
  afterAll(() => {
    throw new Error('a hook that fails')
  })
  it('fails', () => expect(2, 'two is not one').toBe(1))
  it('passes beside it', () => expect(1).toBe(1))
})
