import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatReuseToken, parseReuseToken } from '../../src/token/token.ts'
import { TOKEN_ID } from './samples.ts'

/** Computes the text in another way: 128 bits as one number in base 32. */
function slowly(uuid: string): string {
  let rest = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let text = ''
  for (let place = 0; place < 26; place++) {
    text = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'[Number(rest & 31n)] + text
    rest >>= 5n
  }
  return `t${text}`
}

describe('a reuse token', () => {
  it.each([
    ['too short', 't01HK153X000000000000000000'.slice(0, 26)],
    ['too long', `${formatReuseToken(TOKEN_ID)}0`],
    ['with another first letter', `u${formatReuseToken(TOKEN_ID).slice(1)}`],
    ['with a letter that Crockford leaves out', `t0I${formatReuseToken(TOKEN_ID).slice(3)}`],
    ['with a digit that no letter is', `t0é${formatReuseToken(TOKEN_ID).slice(3)}`],
    ['beyond 128 bits', `t8${'0'.repeat(25)}`],
    ['that is a UUID', TOKEN_ID],
    ['that is a card number', '4111111111111111'],
    ['that is empty', ''],
  ])('%s is none', (_, text) => {
    expect(parseReuseToken(text)).toBeUndefined()
  })

  it('is t and 26 upper-case letters of the 128 bits', () => {
    expect(formatReuseToken('00000000-0000-0000-0000-000000000000')).toBe(`t${'0'.repeat(26)}`)
    expect(formatReuseToken('ffffffff-ffff-ffff-ffff-ffffffffffff')).toBe(`t7${'Z'.repeat(25)}`)
    fc.assert(fc.property(fc.uuid(), uuid => formatReuseToken(uuid) === slowly(uuid)))
  })

  it('names its UUID, whatever the case of its letters', () => {
    fc.assert(
      fc.property(fc.uuid(), uuid => {
        const text = formatReuseToken(uuid)
        expect(text).toMatch(/^t[0-9A-HJKMNP-TV-Z]{26}$/)
        expect([
          parseReuseToken(text),
          parseReuseToken(text.toLowerCase()),
          parseReuseToken(text.toUpperCase()),
        ]).toEqual([uuid, uuid, uuid])
      }),
    )
  })

  it('sorts as its UUID does', () => {
    fc.assert(fc.property(fc.uuid(), fc.uuid(), (a, b) => a < b === formatReuseToken(a) < formatReuseToken(b)))
  })
})
