// Whose an effect is: it may be undone only when all that asked for it were given up, in whatever order they came.
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { areGivenUp, askersOf, isAsker, isUndoable, withAsker, withoutAskers } from '../../../src/job/answer/askers.ts'

const envelopeOf = (n: number) => Buffer.alloc(32, n)
const nameOf = (n: number) => envelopeOf(n).toString('base64url')
const first = askersOf({ envelopeDigest: envelopeOf(0), askers: null })

it('the envelope that took effect asks until it is given up', () => {
  expect(areGivenUp(first)).toBe(false)
  expect(isAsker({ envelopeDigest: envelopeOf(0), askers: null }, envelopeOf(0))).toBe(true)
  expect(isAsker({ envelopeDigest: envelopeOf(0), askers: null }, envelopeOf(1))).toBe(false)
  expect(areGivenUp(withoutAskers(first, [nameOf(0)]))).toBe(true)
})

it('all that asked must be given up, whatever the order of asking and giving up', () => {
  const step = fc.record({ isGivenUp: fc.boolean(), envelope: fc.integer({ min: 0, max: 9 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), steps => {
      let askers = first
      const asked = new Set([0])
      const givenUp = new Set<number>()
      for (const { isGivenUp, envelope } of steps) {
        if (isGivenUp) askers = withoutAskers(askers, [nameOf(envelope)])
        else askers = withAsker(askers, envelopeOf(envelope))
        ;(isGivenUp ? givenUp : asked).add(envelope)
      }
      expect(areGivenUp(askers)).toBe([...asked].every(one => givenUp.has(one)))
    }),
  )
})

it('an effect for which a seventeenth envelope has asked stays for good', () => {
  const ask = (count: number) =>
    Array.from({ length: count }, (_, n) => n).reduce((askers, n) => withAsker(askers, envelopeOf(n)), first)
  const names = Array.from({ length: 40 }, (_, n) => nameOf(n))
  expect(areGivenUp(withoutAskers(ask(16), names))).toBe(true)
  expect(areGivenUp(withoutAskers(ask(17), names))).toBe(false)
  expect(Object.keys(withoutAskers(ask(40), names))).toHaveLength(17)
})

it('envelopes that are given up and never ask take up no more room, and make nothing stay', () => {
  const many = withoutAskers(
    first,
    Array.from({ length: 40 }, (_, n) => nameOf(n + 1)),
  )
  expect(Object.keys(many).length).toBeLessThanOrEqual(16)
  expect(areGivenUp(withoutAskers(many, [nameOf(0)]))).toBe(true)
})

it.each([
  ['a refusal', { status: 'FAILED' }],
  ['a job that was cancelled', { status: 'CANCELLED' }],
  ['a deletion', { outcome: 'DELETED' }],
  ['a chunk', { tokenId: null }],
  ['a refusal whose provider calls are compensated', { status: 'FAILED', reversal: 'REQUIRED' }],
] as const)('there is nothing to undo of %s', (_, more) => {
  const receipt = { status: 'SUCCEEDED', outcome: 'UPDATED', tokenId: 't', reversal: null, askers: null } as const
  expect(isUndoable({ ...receipt, envelopeDigest: envelopeOf(0) })).toBe(true)
  expect(isUndoable({ ...receipt, envelopeDigest: envelopeOf(0), ...more })).toBe(false)
})
