// Keyed digests: what they are, and where they lie.
import { createHmac, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DIGEST_BYTES, keyedDigest, openPartitions, PARTITIONS } from '../../../producers/rows/partitions.ts'

it('digests by HMAC-SHA-256, whatever the text and its length', () => {
  const key = Buffer.from('c0ffee'.repeat(10), 'hex')
  const digestOf = keyedDigest(key)
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), text => {
      const expected = createHmac('sha256', key).update(text).digest().subarray(0, DIGEST_BYTES)
      expect(digestOf(text)).toEqual(expected)
    }),
    { numRuns: 200 },
  )
})

it('has another key each time', () => {
  expect(keyedDigest()('a')).not.toEqual(keyedDigest()('a'))
})

it('keeps at most 4 MiB of digests in memory, and loses none of those on disk', async () => {
  const under = await mkdtemp(join(tmpdir(), 'tokenmill-spill-'))
  const partitions = openPartitions(0, { under })
  try {
    const most = (4 * 1024 * 1024) / DIGEST_BYTES
    for (let n = 1; n < most; n += 1) partitions.add(randomBytes(DIGEST_BYTES))
    expect(await readdir(under)).toEqual([])
    partitions.add(randomBytes(DIGEST_BYTES))
    expect(await readdir(under)).toHaveLength(1)
    partitions.add(randomBytes(DIGEST_BYTES))
    let found = 0
    for (let part = 0; part < PARTITIONS; part += 1) for (const _ of partitions.recordsOf(part)) found += 1
    expect(found).toBe(most + 1)
  } finally {
    partitions.close()
    await rm(under, { recursive: true })
  }
})
