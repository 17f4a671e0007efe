import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/config.ts'
import { parseTokenUri } from '../../../src/vault/pkcs11/uri.ts'

const QUERY = 'module-path=/usr/lib/token.so&pin-source=file:/etc/tokenmill/pin'

describe('the URI of a key in a token', () => {
  it('names token, key, module, file of the PIN and way of wrapping', () => {
    expect(
      parseTokenUri(`pkcs11:token=my%20cards;serial=12;object=k%c3%a9k;id=%00%ff;type=secret-key?${QUERY}&mech=kwp`),
    ).toEqual({
      name: 'pkcs11:token=my%20cards;serial=12;object=k%c3%a9k;id=%00%ff;type=secret-key',
      modulePath: '/usr/lib/token.so',
      token: 'my cards',
      serial: '12',
      object: 'kék',
      id: Buffer.from([0, 255]),
      mech: 'kwp',
      pinFile: '/etc/tokenmill/pin',
    })
  })

  it('may be short, and may name the file of the PIN as a URL', () => {
    const key = parseTokenUri('pkcs11:token=a;id=%01?pin-source=file:///pin&module-path=/m.so')
    expect(key).toMatchObject({ mech: 'gcm', pinFile: '/pin', object: undefined, serial: undefined })
  })

  it.each([
    ['no token', `pkcs11:object=k?${QUERY}`, /token= is missing/],
    ['no key', `pkcs11:token=a?${QUERY}`, /object= or id= is missing/],
    ['no module', 'pkcs11:token=a;object=k?pin-source=file:/pin', /module-path=/],
    ['a module that is looked for', 'pkcs11:token=a;object=k?module-path=m.so&pin-source=file:/pin', /whole path/],
    ['no PIN', 'pkcs11:token=a;object=k?module-path=/m.so', /pin-source=file:.* is missing/],
    ['a PIN from a program', 'pkcs11:token=a;object=k?module-path=/m.so&pin-source=%7ccat', /not a file/],
    ['another mechanism', `pkcs11:token=a;object=k?${QUERY}&mech=cbc`, /mech= is none of gcm, gcm-token-iv, kwp/],
    ['another type', `pkcs11:token=a;object=k;type=private?${QUERY}`, /secret-key/],
    ['an attribute twice', `pkcs11:token=a;token=b;object=k?${QUERY}`, /twice/],
    ['an attribute that is not used', `pkcs11:token=a;object=k;slot-id=1?${QUERY}`, /may name nothing there/],
    ['an empty value', `pkcs11:token=;object=k?${QUERY}`, /is empty/],
    ['a blank', `pkcs11:token=a b;object=k?${QUERY}`, /a blank is %20/],
    ['two questions', `pkcs11:token=a;object=k?${QUERY}?x=1`, /two question marks/],
    ['another scheme', 'file:/kek', /does not begin with pkcs11:/],
  ])('with %s is refused', (_, uri, text) => {
    expect(() => parseTokenUri(uri)).toThrow(ConfigError)
    expect(() => parseTokenUri(uri)).toThrow(text)
  })

  it.each([
    `pkcs11:token=a;object=k?${QUERY}&pin-value=0451-7702`,
    'pkcs11:token=a;object=k;pin-value=0451-7702',
    'pkcs11:token=a;object=k?pin-source=0451-7702',
    'pkcs11:token=a;object=k?0451-7702',
  ])('that holds a PIN is refused, and the PIN is not quoted', uri => {
    const refused = () => parseTokenUri(uri)
    expect(refused).toThrow(ConfigError)
    expect(refused).not.toThrow(/0451/)
  })
})
