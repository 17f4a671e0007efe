import { expect, it } from 'vitest'
import { CARDS } from '../../src/simulate/three-ds/cards.ts'
import { detectBrand } from '../../src/token/brand.ts'

it('every card of the simulator is of a brand that takes part in 3-D Secure', () => {
  expect([...CARDS.keys()].filter(card => detectBrand(card) === undefined)).toEqual([])
})
