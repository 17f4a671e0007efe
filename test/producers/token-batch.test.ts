// The ask of a chunk: its block is bound to client and jti, and a chunk that is encrypted anew counts as the same.
import { describe, expect, it } from 'vitest'
import { tokenBatch } from '../../producers/token-batch.ts'
import { isRefusal } from '../../src/errors.ts'
import { chunkText } from '../../src/job/envelope/digest.ts'
import { blockDigest, openBlock } from '../../src/vault/capture/block.ts'
import { makeParties } from './bundle.ts'

describe('tokenBatch', () => {
  it('seals the records for this client and jti alone, and is the same chunk when sealed again', async () => {
    const { credentials, capturePrivate } = await makeParties()
    const { clientId } = credentials.signingKey
    const key = credentials.captureKeys.jwe
    if (!key) throw new Error('no key')
    const plan = {
      batchId: 'batch-1',
      recordKind: 'token-create',
      tokenScope: credentials.entityId,
      acceptedAt: 1_790_000_000,
      policy: { on_conflict: 'update' },
      captureKey: key,
    } as const
    const lines = [JSON.stringify({ line: 2, request: { card: { cardNumber: '4111111111111111' } } })]
    const [one, two] = [
      await tokenBatch(clientId, plan, { lines, number: 3 }),
      await tokenBatch(clientId, plan, { lines, number: 3 }),
    ]
    if (isRefusal(one) || isRefusal(two)) throw new Error('refused')
    expect(one.jti).toBe('batch-1-3')
    expect(one.block).not.toBe(two.block)
    expect(one.request['block']).toEqual({
      sha256: blockDigest(one.block ?? ''),
      records: 1,
      public_key_alias: 'shop-1',
    })
    expect(JSON.stringify(one)).not.toContain('4111')
    const opener = { alias: 'shop-1', type: 'jwe-rsa', kid: '', privateKey: capturePrivate } as const
    const opened = await openBlock(one.block ?? '', opener, { iss: clientId, jti: one.jti })
    if (isRefusal(opened)) throw new Error(opened.reason)
    expect(opened.toString()).toBe(lines.join('\n'))
    expect(isRefusal(await openBlock(one.block ?? '', opener, { iss: clientId, jti: 'batch-1-4' }))).toBe(true)
    expect(chunkText(one.request, opened)).toBe(chunkText(two.request, opened))
  })

  it('refuses a batch id that no job could be named by', async () => {
    const { credentials } = await makeParties()
    const key = credentials.captureKeys.jwe
    if (!key) throw new Error('no key')
    const plan = { batchId: 'has space', recordKind: 'token-create', acceptedAt: 1, captureKey: key } as const
    expect(await tokenBatch('c', plan, { lines: ['{}'], number: 0 })).toMatchObject({ field: 'body.batch_id' })
  })
})
