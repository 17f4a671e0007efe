import { createHash } from 'node:crypto'
import { compactDecrypt, decodeProtectedHeader } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { BLOCK_BYTES_MAX, blockDigest, blockFormOf, openBlock, sealBlock } from '../../../src/vault/capture/block.ts'
import type { CaptureKeyType } from '../../../src/vault/capture/capture-key.ts'
import { encryptCard } from '../../../src/vault/capture/encrypt.ts'
import { sealJwe } from '../../../src/vault/jwe.ts'
import { CARD, openHalves, openKek, openPairs, PAN, type Pair } from '../bundle.ts'

const REFUSED = { refused: true, reason: 'block_undecryptable', field: 'body.request.block' }
const binding = { iss: 'cabcdefghijklmnopqrstuvwxy', jti: 'batch-1-0' }
const lines = `${JSON.stringify({ line: 2, request: { card: { cardNumber: PAN } } })}\n`.repeat(500)

let pairs: Record<CaptureKeyType, Pair>
beforeAll(async () => {
  pairs = await openPairs(await openHalves(await openKek()))
})

describe('a block', () => {
  it('comes back byte for byte, from text or bytes, by either kind of JWE key', async () => {
    for (const { key, to } of [pairs['jwe-rsa'], pairs['jwe-ec']]) {
      for (const input of [lines, Buffer.from(lines), '', 'Ж\n']) {
        expect(await openBlock(await sealBlock(input, to, binding), key, binding)).toEqual(Buffer.from(input))
      }
    }
  })

  it('says in its protected header which form it has, and nothing of it where that is rows', async () => {
    const { key, to } = pairs['jwe-rsa']
    const rows = await sealBlock(lines, to, binding)
    expect(Object.keys(decodeProtectedHeader(rows))).toEqual(['alg', 'enc', 'kid', 'iss', 'jti'])
    expect(blockFormOf(rows)).toBe('rows')
    const columns = await sealBlock(lines, to, binding, 'columns')
    expect(decodeProtectedHeader(columns)).toMatchObject({ form: 'columns', ...binding })
    expect(blockFormOf(columns)).toBe('columns')
    expect(await openBlock(columns, key, binding)).toEqual(Buffer.from(lines))
    const header = { kid: to.alias, ...binding, form: 'stripes' }
    if (to.type === 'pgp') throw new Error('not a JWE key')
    expect(blockFormOf(sealJwe(Buffer.from(lines), to.publicKey, header))).toBeUndefined()
  })

  it('says in its protected header for whom, for which job and to which key it was sealed', async () => {
    const { key, to } = pairs['jwe-ec']
    const block = await sealBlock(lines, to, binding)
    expect(decodeProtectedHeader(block)).toMatchObject({
      alg: 'ECDH-ES',
      enc: 'A256GCM',
      kid: 'key-jwe-ec',
      ...binding,
    })
    if (key.type === 'pgp') throw new Error('not a JWE key')
    expect(Buffer.from((await compactDecrypt(block, key.privateKey)).plaintext).toString()).toBe(lines)
  })

  it('is refused in another’s envelope, under another job, or without saying whose it is', async () => {
    const { key, to } = pairs['jwe-rsa']
    if (to.type === 'pgp') throw new Error('not a JWE key')
    const block = await sealBlock(lines, to, binding)
    expect(await openBlock(block, key, { ...binding, iss: 'czzzzzzzzzzzzzzzzzzzzzzzzz' })).toEqual(REFUSED)
    expect(await openBlock(block, key, { ...binding, jti: 'batch-1-1' })).toEqual(REFUSED)
    expect(await openBlock(block, { ...key, alias: 'another' } as typeof key, binding)).toEqual(REFUSED)
    for (const header of [
      {},
      { iss: binding.iss, kid: to.alias },
      { jti: binding.jti, kid: to.alias },
      { ...binding },
      { ...binding, kid: 'another' },
    ]) {
      expect(await openBlock(sealJwe(Buffer.from(lines), to.publicKey, header), key, binding)).toEqual(REFUSED)
    }
  })

  it('is refused with a header rewritten to fit', async () => {
    const { key, to } = pairs['jwe-rsa']
    const stolen = { iss: 'czzzzzzzzzzzzzzzzzzzzzzzzz', jti: 'batch-9-0' }
    const parts = (await sealBlock(lines, to, binding)).split('.')
    const header = { ...JSON.parse(Buffer.from(parts[0] ?? '', 'base64url').toString()), ...stolen }
    const rewritten = [Buffer.from(JSON.stringify(header)).toString('base64url'), ...parts.slice(1)].join('.')
    expect(await openBlock(rewritten, key, stolen)).toEqual(REFUSED)
  })

  it('is refused by another key, by an OpenPGP key, and when it is none', async () => {
    const block = await sealBlock(lines, pairs['jwe-rsa'].to, binding)
    expect(await openBlock(block, pairs['jwe-ec'].key, binding)).toEqual(REFUSED)
    expect(await openBlock(block, pairs.pgp.key, binding)).toEqual(REFUSED)
    for (const text of ['', '....', `${block}\n`, block.slice(0, -1), await encryptCard(CARD, pairs['jwe-rsa'].to)]) {
      expect(await openBlock(text, pairs['jwe-rsa'].key, binding)).toEqual(REFUSED)
    }
  })

  it('may have 4 MiB of text and no more, and no OpenPGP key', async () => {
    const { key, to } = pairs['jwe-ec']
    if (to.type === 'pgp') throw new Error('not a JWE key')
    const header = { ...binding, kid: to.alias }
    const empty = sealJwe(Buffer.alloc(0), to.publicKey, header).length
    const most = Math.floor(((BLOCK_BYTES_MAX - empty) * 3) / 4)
    expect(await openBlock(await sealBlock(Buffer.alloc(most, 'x'), to, binding), key, binding)).toEqual(
      Buffer.alloc(most, 'x'),
    )
    const over = Buffer.alloc(most + 3, 'x')
    await expect(sealBlock(over, to, binding)).rejects.toThrow(/broken law/)
    expect(await openBlock(sealJwe(over, to.publicKey, header), key, binding)).toEqual(REFUSED)
    await expect(sealBlock(lines, pairs.pgp.to, binding)).rejects.toThrow(/broken law/)
  })

  it('has a digest of its text, in lower-case hex', async () => {
    const block = await sealBlock(lines, pairs['jwe-rsa'].to, binding)
    expect(blockDigest(block)).toBe(createHash('sha256').update(block).digest('hex'))
  })
})
