// Encrypted cards for the records of a chunk, as an honest sender makes them and in many wrong ways.
import { createCipheriv, constants as crypto, publicEncrypt, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import type { PublicCaptureKey } from '../../../src/vault/capture/encrypt.ts'

export interface SealedCard {
  /** The protected header, of which the `kid` is named if there is one. */
  header: { text: (kid: string) => string; keyBytes: number }
  /** Changes the parts of the JWE. */
  spoil: (parts: string[]) => string
  /** Makes the plaintext of the card's members. */
  inner: (card: object) => Buffer
  alias: 'known' | 'unknown' | 'bad' | 'absent'
}

const json = (value: unknown) => JSON.stringify(value)
const headerOf = (make: (kid: string) => unknown, keyBytes = 32) => ({
  text: (kid: string) => json(make(kid)),
  keyBytes,
})
const usual = { alg: 'RSA-OAEP-256', enc: 'A256GCM' }
export const usualHeader = headerOf(kid => ({ ...usual, kid }))
const headers = [
  headerOf(kid => ({ kid, enc: 'A256GCM', alg: 'RSA-OAEP-256' })),
  headerOf(kid => ({ ...usual, enc: 'A128GCM', kid }), 16),
  headerOf(kid => ({ ...usual, enc: 'A128GCM', kid })),
  headerOf(kid => ({ ...usual, enc: 'A128CBC-HS256', kid })),
  headerOf(kid => ({ ...usual, alg: 'RSA-OAEP', kid })),
  headerOf(kid => ({ ...usual, alg: 'ECDH-ES', kid })),
  headerOf(kid => ({ ...usual, alg: 'dir', kid })),
  headerOf(() => usual),
  headerOf(() => ({ ...usual, kid: 'another' })),
  headerOf(() => ({ ...usual, kid: 7 })),
  headerOf(kid => ({ ...usual, kid, typ: 'JOSE', iat: 1, cty: 'json', nested: { a: [1] } })),
  headerOf(kid => ({ ...usual, kid, crit: ['exp'], exp: 1 })),
  headerOf(kid => ({ ...usual, kid, zip: 'DEF' })),
  headerOf(kid => ({ ...usual, kid, jwk: {} })),
  headerOf(kid => [usual, kid]),
  headerOf(() => null),
  { text: () => '{"alg":"RSA-OAEP-256"', keyBytes: 32 },
  { text: (kid: string) => `{"alg":"dir","alg":"RSA-OAEP-256","enc":"A256GCM","kid":"${kid}"}`, keyBytes: 32 },
  { text: (kid: string) => ` { "alg": "RSA-OAEP-256", "enc": "A256GCM", "kid": "${kid}" } `, keyBytes: 32 },
]

const swapped = (at: number, change: (part: string) => string) => (parts: string[]) =>
  parts.map((part, index) => (index === at ? change(part) : part)).join('.')
const otherLetter = (part: string) => (part.startsWith('A') ? 'B' : 'A') + part.slice(1)
const spoils: ((parts: string[]) => string)[] = [
  ...[0, 1, 2, 3, 4].flatMap(at => [
    swapped(at, otherLetter),
    swapped(at, part => part.slice(0, -1)),
    swapped(at, part => part.slice(4)),
    swapped(at, part => `${part}A`),
    swapped(at, () => ''),
  ]),
  swapped(1, () => randomBytes(256).toString('base64url')),
  swapped(1, () => Buffer.alloc(256, 0xff).toString('base64url')),
  swapped(3, part => `${part}=`),
  swapped(3, part => `${part.slice(0, 3)}+${part.slice(4)}`),
  swapped(3, part => `${part.slice(0, 3)}/${part.slice(4)}`),
  swapped(3, part => `${part.slice(0, 3)}\n${part.slice(3)}`),
  swapped(3, part => `${part}é`),
  swapped(4, part => `${part} `),
  parts => parts.slice(0, 4).join('.'),
  parts => [...parts, 'AAAA'].join('.'),
  parts => parts.join('.').slice(0, 40),
  parts => parts.join(''),
  parts => ` ${parts.join('.')}`,
  parts => `${parts.join('.')}.${'A'.repeat(16_384)}`,
]

const cardWith = (more: object) => (card: object) => Buffer.from(json({ ...card, ...more }))
const at = (ms: number) => new Date(Date.now() + ms).toISOString()
const inners: SealedCard['inner'][] = [
  cardWith({ sequenceNumber: '7' }),
  cardWith({ sequenceNumber: '' }),
  cardWith({ startMonth: 1, startYear: 2020 }),
  cardWith({ startMonth: 1 }),
  cardWith({ cvv: '123' }),
  cardWith({ cvv: 'x' }),
  cardWith({ captureTime: undefined }),
  cardWith({ captureTime: 'yesterday' }),
  card => cardWith({ captureTime: at(-16 * 60_000) })(card),
  card => cardWith({ captureTime: at(3 * 60_000) })(card),
  cardWith({ other: 'member', nested: { a: ['}'] } }),
  card => Buffer.from(json(card).replace('{', '{"cvv":"123","cvv":"124",')),
  card => Buffer.from(` ${json(card)}\n`),
  card => Buffer.from(`\ufeff${json(card)}`),
  card => Buffer.concat([Buffer.from(json(card)), Buffer.from([0xff])]),
  card => Buffer.from(json([card])),
  () => Buffer.from('not JSON'),
  () => Buffer.from('null'),
  () => Buffer.alloc(0),
]

const mostly = <T>(usually: T, others: readonly T[]) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(usually) }, { weight: 1, arbitrary: fc.constantFrom(...others) })

export const sealedCard: fc.Arbitrary<SealedCard> = fc.record({
  header: mostly(usualHeader, headers),
  spoil: mostly(parts => parts.join('.'), spoils),
  inner: mostly(cardWith({}), inners),
  alias: mostly<SealedCard['alias']>('known', ['known', 'unknown', 'bad', 'absent']),
})

/** The members of a request for a card, encrypted to an RSA key. */
export function seal({ header, spoil, inner, alias }: SealedCard, card: object, to: PublicCaptureKey): object {
  if (to.type !== 'jwe-rsa') throw new Error('not an RSA key')
  const cek = randomBytes(header.keyBytes)
  const iv = randomBytes(12)
  const head = Buffer.from(header.text(to.alias)).toString('base64url')
  const cipher = createCipheriv(header.keyBytes === 16 ? 'aes-128-gcm' : 'aes-256-gcm', cek, iv)
  cipher.setAAD(Buffer.from(head))
  const text = cipher.update(inner({ ...card, captureTime: at(-1_000) }))
  cipher.final()
  const wrapped = publicEncrypt({ key: to.publicKey, padding: crypto.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }, cek)
  const rest = [wrapped, iv, text, cipher.getAuthTag()].map(part => part.toString('base64url'))
  const named = { known: to.alias, unknown: 'no-such-key', bad: 'no alias', absent: undefined }[alias]
  return { encrypted_card: spoil([head, ...rest]), public_key_alias: named }
}
