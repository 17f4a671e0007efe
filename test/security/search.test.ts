// Tests the search itself: it must find every form of a card that is there.
import { describe, expect, it } from 'vitest'
import { canary, findCodes, findTraces, guesses, misspelt } from './canary.ts'
import { forge, otherKey } from './forge.ts'

const card = canary('search')
const { pan } = card
const credentials = {
  userId: '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b',
  entityId: '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b',
  audience: 'tokenmill',
  tokenScope: undefined,
  baseUrl: '',
  signingKey: { clientId: `c${'a'.repeat(25)}`, kid: 'k', alg: 'EdDSA' as const, privateKey: otherKey() },
  captureKeys: { jwe: undefined, pgp: undefined },
  installationKeys: new Map(),
}
const found = (text: string) =>
  findTraces([card], [{ name: 'here', text }]).map(({ as }) => as.replace(/ at .*| url.*/, ''))

describe('the search for a card', () => {
  it.each([
    ['digits', `x${pan}x`],
    ['separated', pan.replace(/(....)/g, '$1-')],
    ['separated', [...pan].join(' ')],
    ['base64', `"${Buffer.from(pan).toString('base64')}"`],
    ['base64', Buffer.from(` ${pan}`).toString('base64')],
    ['base64', Buffer.from(`  ${pan}`).toString('base64url')],
    ['base64', forge(credentials, { claims: { reference: pan } })],
    ['hex', `\\x${Buffer.from(`a${pan}`).toString('hex')}`],
    ['HEX', Buffer.from(pan).toString('hex').toUpperCase()],
  ])('finds it as %s: %s', (as, text) => {
    expect(found(text)).toContain(as)
  })

  it('finds nothing in what may be shown, nor in another card', () => {
    expect(
      found(`${pan.slice(0, 8)} ${pan.slice(-4)} ${canary('other').pan} ${misspelt(canary('other')).pan}`),
    ).toEqual([])
  })

  it('finds a security code where it stands alone, and in a signed text', () => {
    const codes = (text: string) => findCodes(['0739'], [{ name: 'here', text }]).length
    for (const text of [
      '0739',
      '"cvv":"0739"',
      '(x,0739,y)',
      forge(credentials, { claims: { request: { cvv: '0739' } } }),
    ])
      expect(codes(text)).toBeGreaterThan(0)
    for (const text of ['10739', 'a0739', '12:00:00.0739', '0739f']) expect(codes(text)).toBe(0)
  })

  it('is for numbers that are as good as real ones', () => {
    const luhn = (number: string) =>
      [...number]
        .reverse()
        .reduce(
          (sum, digit, index) =>
            sum + (index % 2 === 0 ? Number(digit) : (Number(digit) * 2) % 9 || (digit === '9' ? 9 : 0)),
          0,
        ) % 10
    expect([pan, ...guesses('40000071', '4242', 20)].map(luhn)).toEqual(Array(21).fill(0))
    expect(luhn(misspelt(card).pan)).not.toBe(0)
  })
})
