// Names are stored and answered: a name must not show the card of its job, and must not let a client find out hidden
// digits by trying.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clearNumbersOf, nameRefusal, withoutOwnPan } from '../../src/job/pan-in-names.ts'
import { endsOf, holdsPanLookalike, numbersIn } from '../../src/token/pan.ts'
import { canary, guesses } from './canary.ts'

const { pan } = canary('own')
const fullWidth = [...pan].map(digit => String.fromCodePoint(0xff10 + Number(digit))).join('')

describe('a name', () => {
  it.each([
    pan,
    `order ${pan}`,
    `${pan}-1`,
    `1${pan}1`,
    pan.replace(/(....)/g, '$1 '),
    pan.replace(/(....)/g, 'x$1'),
    fullWidth,
  ])('that holds the number, however it is written, is refused and not told: %s', name => {
    expect(nameRefusal({ jti: 'j', reference: name }, [pan])).toMatchObject({
      reason: 'reference_pan',
      field: 'body.reference',
    })
    expect(nameRefusal({ jti: name, reference: 'r' }, [pan])).toMatchObject({ reason: 'jti_pan', field: 'body.jti' })
    expect(withoutOwnPan({ jti: 'j', reference: name }, [pan], 'numeric')).toEqual({ jti: 'j' })
    expect(withoutOwnPan({ jti: pan, reference: 'r' }, [pan], 'numeric')).toEqual({
      jti: '*'.repeat(pan.length),
      reference: 'r',
    })
  })

  it('is judged by what is shown of the card alone: of all candidates none is told apart', () => {
    const candidates = guesses(pan.slice(0, 8), pan.slice(-4), 200)
    expect(candidates.every(name => nameRefusal({ reference: name }, [pan])?.reason === 'reference_pan')).toBe(true)
  })

  it.each([
    '',
    'r',
    pan.slice(0, -1),
    pan.slice(1),
    `${pan.slice(0, -1)}x`,
    '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b',
    '20261121120000123',
    canary('another').pan,
  ])('that holds something else may be: %s', name => {
    expect(nameRefusal({ jti: name, reference: name }, [pan])).toBeUndefined()
    expect(withoutOwnPan({ jti: name, reference: name }, [pan], 'numeric')).toEqual({ jti: name, reference: name })
  })

  it('is held against every number that a request has in clear, and no other text of it', () => {
    const email = `${pan}@example.com`
    expect(clearNumbersOf({ card: { cardNumber: pan } })).toEqual([pan])
    expect(clearNumbersOf({ card: { cardNumber: Number(pan) } })).toEqual([pan])
    expect(clearNumbersOf({ id: pan, pan: `${pan.slice(0, 4)} ${pan.slice(4)}` })).toEqual([pan, pan])
    expect(clearNumbersOf({ id: `t${'1'.repeat(26)}`, card_holder_email: email })).toEqual([])
    for (const request of [
      undefined,
      null,
      1,
      'x',
      [],
      {},
      { card: null },
      { card: [[pan]] },
      { card: { cardNumber: {} } },
    ])
      expect(clearNumbersOf(request)).toEqual([])
  })
})

describe('a card number', () => {
  it('is found in a text whatever stands around it', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('', ' ', '"', ':', 'a ', '{"cardNumber":"'),
        fc.constantFrom('', ' ', '"}', ',', ' b'),
        (before, after) => {
          expect(numbersIn(`${before}${pan}${after}`)).toEqual([pan])
        },
      ),
    )
    expect(numbersIn(`{"captureTime":"2026-11-21T12:00:00.123Z","cardNumber":"${pan}"}`)).toEqual([pan])
    expect(numbersIn('t01jd3x8z7q2m4n6p8r0s2t4v6w 6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b')).toEqual([])
  })

  it('of unknown length is known by its first and last digits', () => {
    const shown = { bin: pan.slice(0, 8), lastFour: pan.slice(-4) }
    expect(holdsPanLookalike(`A ${pan}`, shown)).toBe(true)
    expect(holdsPanLookalike(`A ${pan.slice(0, 8)}${pan.slice(-4)}`, shown)).toBe(true)
    expect(holdsPanLookalike(`A ${pan.slice(0, 8)}12345678${pan.slice(-4)}`, shown)).toBe(false)
    expect(holdsPanLookalike('ANNA MEYER', shown)).toBe(false)
    expect(endsOf(pan)).toEqual({ bin: pan.slice(0, 6), lastFour: pan.slice(-4), length: 16 })
  })
})
