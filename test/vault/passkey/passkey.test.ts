// What a passkey signs is believed only if it is what was asked, by this domain's page, of a user who was verified. The vectors
// are the W3C's (WebAuthn level 3, "Test Vectors").
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { encode } from 'cborg'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/config.ts'
import type { Act } from '../../../src/job/system/act.ts'
import { verifyAssertion } from '../../../src/vault/passkey/assertion.ts'
import { readAttestation } from '../../../src/vault/passkey/attestation.ts'
import { challengeOf } from '../../../src/vault/passkey/challenge.ts'
import { readRelyingParty, relyingPartyOf } from '../../../src/vault/passkey/relying-party.ts'
import { type Oddity, openAuthenticator } from './authenticator.ts'

const SITE = { origin: 'https://console.example.com', rpId: 'console.example.com' }
const ALGORITHMS = ['ES256', 'EdDSA', 'RS256'] as const
const base64url = (hex: string) => Buffer.from(hex, 'hex').toString('base64url')

describe('a new passkey', () => {
  it.each(ALGORITHMS)('of %s is read, and what it signs then is believed', alg => {
    const authenticator = openAuthenticator(SITE, alg)
    const challenge = randomBytes(32)
    const made = readAttestation(authenticator.create(challenge), { ...SITE, challenge })
    expect(made).toEqual({
      credentialId: authenticator.credentialId,
      alg,
      signCount: 0,
      publicJwk: authenticator.publicJwk,
    })
    if (typeof made === 'string') return expect.fail()
    const asked = { ...SITE, challenge: randomBytes(32) }
    expect(verifyAssertion(authenticator.get(asked.challenge), { ...made, ...asked })).toEqual({ signCount: 1 })
  })

  it('may have extensions, and no byte too many or too few', () => {
    const { create } = openAuthenticator(SITE)
    const asked = { ...SITE, challenge: randomBytes(32) }
    const read = (odd: Oddity) => readAttestation(create(asked.challenge, odd), asked)
    expect(read({ extensions: true })).toMatchObject({ alg: 'ES256' })
    expect(read({ behind: Buffer.from([0]) })).toBe('form')
    const { attestation_object: object, ...rest } = create(asked.challenge)
    expect(readAttestation({ ...rest, attestation_object: object.slice(0, -4) }, asked)).toBe('form')
    expect(readAttestation({ ...rest, attestation_object: 'AAAA' }, asked)).toBe('form')
  })

  it('is refused if anything differs from what was asked', () => {
    const { create, get } = openAuthenticator(SITE)
    const asked = { ...SITE, challenge: randomBytes(32) }
    const read = (odd: Oddity) => readAttestation(create(asked.challenge, odd), asked)
    expect(readAttestation(create(randomBytes(32)), asked)).toBe('challenge')
    expect(read({ type: 'webauthn.get' })).toBe('form')
    expect(read({ origin: 'https://console.example.com:444' })).toBe('origin')
    expect(read({ crossOrigin: true })).toBe('origin')
    expect(read({ rpId: 'example.com' })).toBe('rp_id')
    expect(read({ isVerified: false })).toBe('unverified')
    expect(read({ isPresent: false })).toBe('unverified')
    // The answer to a sign-in makes no passkey.
    const { client_data_json, authenticator_data } = get(asked.challenge)
    const object = encode({ fmt: 'none', attStmt: {}, authData: Buffer.from(authenticator_data, 'base64url') })
    const attestation_object = Buffer.from(object).toString('base64url')
    expect(readAttestation({ client_data_json, attestation_object }, asked)).toBe('form')
  })

  it('of another algorithm is refused', () => {
    const { create } = openAuthenticator(SITE)
    const asked = { ...SITE, challenge: randomBytes(32) }
    const withKey = (cose: Map<number, unknown>) => {
      const id = randomBytes(16)
      const head = Buffer.from(create(asked.challenge).attestation_object, 'base64url')
      const at = head.indexOf(Buffer.from('authData')) + 'authData'.length + 2
      const front = Buffer.from(head.subarray(at, at + 53))
      const data = Buffer.concat([front, Buffer.from([0, 16]), id, Buffer.from(encode(cose))])
      const object = Buffer.from(encode({ fmt: 'none', attStmt: {}, authData: data })).toString('base64url')
      return readAttestation({ ...create(asked.challenge), attestation_object: object }, asked)
    }
    const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
    const point: [number, unknown][] = [
      [-2, Buffer.from(x, 'base64url')],
      [-3, Buffer.from(y, 'base64url')],
    ]
    expect(withKey(new Map<number, unknown>([[1, 2], [3, -7], [-1, 1], ...point]))).toMatchObject({ alg: 'ES256' })
    expect(withKey(new Map<number, unknown>([[1, 2], [3, -35], [-1, 2], ...point]))).toBe('algorithm')
    expect(
      withKey(
        new Map<number, unknown>([
          [1, 2],
          [3, -7],
          [-1, 1],
          [-2, randomBytes(32)],
          [-3, randomBytes(32)],
        ]),
      ),
    ).toBe('algorithm')
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
    const bytes = (text = '') => Buffer.from(text, 'base64url')
    expect(
      withKey(
        new Map<number, unknown>([
          [1, 3],
          [3, -257],
          [-1, bytes(weak.n)],
          [-2, bytes(weak.e)],
        ]),
      ),
    ).toBe('algorithm')
  })
})

describe('what a passkey signed', () => {
  const authenticator = openAuthenticator(SITE)
  const challenge = randomBytes(32)
  const passkey = { ...SITE, challenge, publicJwk: authenticator.publicJwk, alg: 'ES256', signCount: 0 }
  const verify = (odd: Oddity, expected: Partial<typeof passkey> = {}) =>
    verifyAssertion(authenticator.get(challenge, odd), { ...passkey, ...expected })

  it('is refused if anything differs from what was asked', () => {
    expect(verify({})).toHaveProperty('signCount')
    expect(verify({}, { challenge: randomBytes(32) })).toBe('challenge')
    expect(verify({ type: 'webauthn.create' })).toBe('form')
    expect(verify({ origin: 'http://console.example.com' })).toBe('origin')
    expect(verify({ crossOrigin: true })).toBe('origin')
    expect(verify({ topOrigin: 'https://elsewhere.example' })).toBe('origin')
    expect(verify({ rpId: 'example.com' })).toBe('rp_id')
    expect(verify({ isVerified: false })).toBe('unverified')
    expect(verify({ isPresent: false })).toBe('unverified')
    expect(verify({ behind: Buffer.from([1]) })).toBe('form')
  })

  it('is refused with another key, algorithm or signature', () => {
    const { publicJwk } = openAuthenticator(SITE)
    expect(verify({}, { publicJwk })).toBe('signature')
    expect(verify({}, { alg: 'RS256' })).toBe('signature')
    const said = authenticator.get(challenge)
    for (const member of ['signature', 'authenticator_data', 'client_data_json'] as const) {
      expect(verifyAssertion({ ...said, [member]: '' }, passkey), member).not.toHaveProperty('signCount')
      expect(verifyAssertion({ ...said, [member]: 'AA' }, passkey), member).not.toHaveProperty('signCount')
    }
    expect(verifyAssertion({ ...said, signature: authenticator.get(randomBytes(32)).signature }, passkey)).toBe(
      'signature',
    )
  })

  it('is refused if the counter did not grow, unless the authenticator does not count', () => {
    expect(verify({ signCount: 6 }, { signCount: 5 })).toEqual({ signCount: 6 })
    expect(verify({ signCount: 5 }, { signCount: 5 })).toBe('counter')
    expect(verify({ signCount: 4 }, { signCount: 5 })).toBe('counter')
    expect(verify({ signCount: 0 }, { signCount: 5 })).toBe('counter')
    expect(verify({ signCount: 0 }, { signCount: 0 })).toEqual({ signCount: 0 })
    expect(verify({ signCount: 1 }, { signCount: 0 })).toEqual({ signCount: 1 })
  })
})

describe('the vectors of the W3C', () => {
  const site = { origin: 'https://example.org', rpId: 'example.org' }
  const asked = (hex: string) => ({ ...site, challenge: Buffer.from(hex, 'hex') })

  it('packed-self.ES256: a passkey of a verified user is read; an unverified use has a right signature and is refused', () => {
    const made = readAttestation(
      {
        client_data_json: base64url(
          '7b2274797065223a22776562617574686e2e637265617465222c226368616c6c656e6765223a2265476e4374334c55745936366b336a506a796e6962506b31716e666644616966715a774c33417032392d55222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73652c22657874726144617461223a22636c69656e74446174614a534f4e206d617920626520657874656e6465642077697468206164646974696f6e616c206669656c647320696e20746865206675747572652c207375636820617320746869733a205539685458764b453255526b4d6e625f307859485667227d',
        ),
        attestation_object: base64url(
          'a363666d74667061636b65646761747453746d74a263616c672663736967584630440220067a20754ab925005dbf378097c92120031581c73228d1fb4f5b881bcd7da98302207fc7b147558c7c0eba3af18bd9d121fa3d3a26d17fe3f220272178f473b6006d68617574684461746158a4bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b55d00000000df850e09db6afbdfab51697791506cfc0020455ef34e2043a87db3d4afeb39bbcb6cc32df9347c789a865ecdca129cbef58ca5010203262001215820eb151c8176b225cc651559fecf07af450fd85802046656b34c18f6cf193843c5225820927b8aa427a2be1b8834d233a2d34f61f13bfd44119c325d5896e183fee484f2',
        ),
      },
      asked('7869c2b772d4b58eba9378cf8f29e26cf935aa77df0da89fa99c0bdc0a76f7e5'),
    )
    expect(made).toMatchObject({
      credentialId: base64url('455ef34e2043a87db3d4afeb39bbcb6cc32df9347c789a865ecdca129cbef58c'),
      alg: 'ES256',
    })
    if (typeof made === 'string') return expect.fail()
    const said = {
      authenticator_data: base64url('bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b50900000000'),
      client_data_json: base64url(
        '7b2274797065223a22776562617574686e2e676574222c226368616c6c656e6765223a225248696843784e534e493352594d45314f7731476d3132786e726b634a5f6666707637546e2d4a71386773222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73652c22657874726144617461223a22636c69656e74446174614a534f4e206d617920626520657874656e6465642077697468206164646974696f6e616c206669656c647320696e20746865206675747572652c207375636820617320746869733a206754623533727a36456853576f6d58477a696d433151227d',
      ),
      signature: base64url(
        '304402203310b9431903c401f1be2bdc8d23a4007682dbbddcf846994947b7f465daf84002204e94dd00047b316061b3b99772b7efd95994a83ef584b3b6b825ea3550251b66',
      ),
    }
    const expected = { ...made, ...asked('4478a10b1352348dd160c1353b0d469b5db19eb91c27f7dfa6fed39fe26af20b') }
    // The signature is checked before the flags.
    expect(verifyAssertion(said, expected)).toBe('unverified')
    const flipped = said.signature.replace(/^(.{30})./, (_, front: string) => `${front}_`)
    expect(verifyAssertion({ ...said, signature: flipped }, expected)).toBe('signature')
  })

  it('none.ES256: an unverified user makes no passkey', () => {
    const said = {
      client_data_json: base64url(
        '7b2274797065223a22776562617574686e2e637265617465222c226368616c6c656e6765223a22414d4d507434557878475453746e63647134313759447742466938767049612d7077386f4f755657345441222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73652c22657874726144617461223a22636c69656e74446174614a534f4e206d617920626520657874656e6465642077697468206164646974696f6e616c206669656c647320696e20746865206675747572652c207375636820617320746869733a20426b5165446a646354427258426941774a544c453551227d',
      ),
      attestation_object: base64url(
        'a363666d74646e6f6e656761747453746d74a068617574684461746158a4bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b559000000008446ccb9ab1db374750b2367ff6f3a1f0020f91f391db4c9b2fde0ea70189cba3fb63f579ba6122b33ad94ff3ec330084be4a5010203262001215820afefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b672f26df61225820930a56b87a2fca66334b03458abf879717c12cc68ed73290af2e2664796b9220',
      ),
    }
    const challenge = '00c30fb78531c464d2b6771dab8d7b603c01162f2fa486bea70f283ae556e130'
    expect(readAttestation(said, asked(challenge))).toBe('unverified')
  })
})

describe('the challenge of an act', () => {
  const act: Omit<Act, 'proof'> = {
    act: 'batch.pause',
    subject: 'b-1',
    parameters: { client_id: 'c' },
    seen: 'RUNNING',
    reason: 'too fast',
    person_id: '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b',
    nonce: 'AAAAAAAAAAAAAAAAAAAAAA',
    expires_at: 1_900_000_000,
  }

  it('is another one whatever differs, except for the proof and the order of members', () => {
    const own = challengeOf(act, 'i-1')
    expect(own).toHaveLength(32)
    const changed: Partial<Act>[] = [
      { act: 'batch.cancel' },
      { subject: 'b-2' },
      { parameters: { client_id: 'd' } },
      { seen: null },
      { reason: null },
      { person_id: '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b' },
      { nonce: 'BAAAAAAAAAAAAAAAAAAAAA' },
      { expires_at: 1_900_000_001 },
    ]
    for (const change of changed) expect(challengeOf({ ...act, ...change }, 'i-1')).not.toEqual(own)
    expect(challengeOf(act, 'i-2')).not.toEqual(own)
    expect(challengeOf({ ...act, proof: null }, 'i-1')).toEqual(own)
    expect(challengeOf(Object.fromEntries(Object.entries(act).reverse()) as typeof act, 'i-1')).toEqual(own)
  })
})

describe('the origin of the console', () => {
  it('is https, or http on localhost, and names a host', () => {
    expect(relyingPartyOf('https://console.example.com')).toEqual(SITE)
    expect(relyingPartyOf('https://console.example.com/')).toEqual(SITE)
    expect(readRelyingParty({})).toEqual({ origin: 'http://localhost:8090', rpId: 'localhost' })
    expect(readRelyingParty({ TOKENMILL_CONSOLE_PORT: '9000' }).origin).toBe('http://localhost:9000')
    expect(readRelyingParty({ TOKENMILL_CONSOLE_ORIGIN: SITE.origin })).toEqual(SITE)
    const wrong = [
      'http://console.example.com',
      'https://127.0.0.1',
      'https://a.example/x',
      'https://u@a.example',
      'console',
    ]
    for (const origin of wrong) expect(() => relyingPartyOf(origin), origin).toThrow(ConfigError)
  })
})
