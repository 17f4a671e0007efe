// A segment of the audit, as somebody can change it who owns the database and the place of segments, but no signing key.
import { createHash, generateKeyPairSync } from 'node:crypto'
import { expect, it } from 'vitest'
import { readSegment, signHead } from '../../src/audit/segment.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const own = { kid: 'own', alg: 'EdDSA', privateKey } as const
const keys = new Map([['own', { alg: 'EdDSA', publicKey } as const]])
const hash = createHash('sha256').update('').digest('hex')
const HEAD = {
  installation_id: '0b1c7a52-6f0e-4a6e-9d51-2f6f6a1f3c11',
  segment: 1,
  previous: null,
  from: 1,
  to: 0,
  hash_before: hash,
  hash,
  iat: 1,
}

const segmentOf = (jws: string) => `${JSON.stringify({ head: jws })}\n`

it("can't be forged: its head is signed by the installation, for a segment", () => {
  const right = signHead(HEAD, own)
  expect(readSegment(segmentOf(right), keys)).toMatchObject({ head: HEAD, broken: undefined })
  const other = generateKeyPairSync('ed25519')
  const forged = signHead(HEAD, { ...own, privateKey: other.privateKey })
  const [head = '', , signature = ''] = right.split('.')
  const changed = [head, Buffer.from(JSON.stringify({ ...HEAD, iat: 2 })).toString('base64url'), signature].join('.')
  for (const jws of [forged, changed, signHead(HEAD, { ...own, kid: 'unknown' })])
    expect(readSegment(segmentOf(jws), keys)).toEqual({ broken: 'its head is not signed by this installation' })
})
