// Rows cut into chunks: alike each time, by number and by bytes.
import { expect, it } from 'vitest'
import { signAsk } from '../../../producers/envelope.ts'
import { countChunks, cutRows, type RowChunk } from '../../../producers/rows/chunks.ts'
import { rejectRow, skipRow } from '../../../producers/rows/record.ts'
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

const skipped = (line: number): Row => skipRow(line, 'no_card')
const shape = (chunks: RowChunk[]) => chunks.map(({ position, number, rows }) => [position, number, rows.length])

it('skipped rows stay with the chunk before them and begin none', async () => {
  const rows = [rowOf(1), rowOf(2), skipped(3), skipped(4), rowOf(5), skipped(6)]
  const chunks = await cut(rows, 2)
  expect(shape(chunks)).toEqual([
    [0, 0, 4],
    [1, 1, 2],
  ])
  expect(chunks.map(({ isLast }) => isLast)).toEqual([false, true])
})

it('a long series of skipped rows is cut for itself, and takes no number', async () => {
  const series = Array.from({ length: 230 }, (_, index) => skipped(index + 2))
  const chunks = await cut([rowOf(1), ...series, rowOf(232)], 2)
  expect(shape(chunks)).toEqual([
    [0, 0, 100],
    [1, undefined, 100],
    [2, 1, 32],
  ])
  expect(await cut([...series, rowOf(232)], 2).then(all => all.map(({ number }) => number))).toEqual([
    undefined,
    undefined,
    0,
  ])
})

it('counts the chunks and rows that are sent as they are cut', async () => {
  async function* parts() {
    yield [skipped(1), rowOf(2), rowOf(3), rowOf(4), skipped(5)]
  }
  expect(await countChunks(parts(), 2)).toEqual({ chunks: 2, rows: 3 })
})

it('few rows among many skipped ones share a chunk', async () => {
  const rows = Array.from({ length: 60 }, (_, index) => (index % 3 === 0 ? rowOf(index + 1) : skipped(index + 1)))
  expect(shape(await cut(rows, 10))).toEqual([
    [0, 0, 30],
    [1, 1, 30],
  ])
})
