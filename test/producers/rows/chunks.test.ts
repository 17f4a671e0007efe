// Rows cut into chunks: alike each time, by number and by bytes.
import { expect, it } from 'vitest'
import { signAsk } from '../../../producers/envelope.ts'
import { cutRows, type RowChunk } from '../../../producers/rows/chunks.ts'
import { rejectRow } from '../../../producers/rows/record.ts'
import type { Row } from '../../../producers/rows/rows.ts'
import { tokenBatch } from '../../../producers/token-batch.ts'
import { isRefusal } from '../../../src/errors.ts'
import { CHUNK } from '../../../src/job/token-batch.ts'
import { makeParties } from '../bundle.ts'

const rowOf = (line: number, size = 10): Row => ({ ...rejectRow(line, 'row_fields'), json: 'x'.repeat(size) })

async function cut(rows: Row[], size: number) {
  async function* parts() {
    yield rows
  }
  const chunks: RowChunk[] = []
  for await (const chunk of cutRows(parts(), size)) chunks.push(chunk)
  return chunks
}

it('no rows make no chunk', async () => {
  expect(await cut([], 500)).toEqual([])
})

it('rows are cut by number, in order', async () => {
  const rows = Array.from({ length: 1_001 }, (_, index) => rowOf(index + 1))
  const chunks = await cut(rows, 500)
  expect(chunks.map(chunk => [chunk.number, chunk.rows.length])).toEqual([
    [0, 500],
    [1, 500],
    [2, 1],
  ])
  expect(chunks[2]?.rows[0]?.line).toBe(1_001)
  expect(await cut(rows, 500)).toEqual(chunks)
})

it('rows are cut by bytes, so that no block is longer than 4 MiB', async () => {
  const { credentials } = await makeParties()
  const captureKey = credentials.captureKeys.jwe
  if (!captureKey) throw new Error('no key')
  const chunks = await cut(
    Array.from({ length: 120 }, (_, index) => rowOf(index + 1, 60_000)),
    1_000,
  )
  expect(chunks.length).toBeGreaterThan(1)
  expect(chunks.flatMap(({ rows }) => rows)).toHaveLength(120)
  const blocks = chunks.map(({ rows }) => rows.map(({ json }) => json))
  for (const lines of blocks) expect(Buffer.byteLength(lines.join('\n'))).toBeLessThan(CHUNK.bytesMax)
  const plan = { batchId: 'b', recordKind: 'token-create', acceptedAt: 1, captureKey, chunkRecords: 1_000 } as const
  const ask = await tokenBatch('c'.repeat(26), plan, { lines: blocks[0] ?? [], number: 0 })
  if (isRefusal(ask)) throw new Error(ask.reason)
  expect(isRefusal(await signAsk(credentials, ask, { jti: ask.jti }, Date.now()))).toBe(false)
})
