// `tokenmill ingest orders FILE.ndjson`: what it stores and prints.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Bench, openBench } from '../../cli/command-bench.ts'
import { orderOf } from '../../orders/sample.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
  await bench.cli(['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek')])
})
afterAll(() => bench?.close())

const ingest = async (name: string, content: string | Buffer) => {
  const file = join(bench.dataDir, name)
  await writeFile(file, content)
  const { status, stdout } = await bench.cli(['ingest', 'orders', file, '--json'])
  const told = JSON.parse(stdout || '{}') as Record<string, unknown>
  return {
    status,
    told,
    refused: (await readFile(`${file}.results.csv`, 'utf8').catch(() => '')).trimEnd().split('\n'),
  }
}
const lines = (orders: unknown[]) => `${orders.map(order => JSON.stringify(order)).join('\n')}\n`

it('takes orders in, the later state of each, and names every line that it refuses', async () => {
  const orders = Array.from({ length: 1_200 }, (_, n) => orderOf(n))
  const later = { ...orderOf(3), status: 'COMPLETED', modifiedDate: '2026-06-01T00:00:00+02:00' }
  const bad = [JSON.stringify({ ...orderOf(1), status: 'LOST' }), '{"a":1,"a":2}', 'x', '[]', `{"orderId":"=cmd()"}`]
  const all = `\uFEFF${lines([later, ...orders, orderOf(3)])}\r\n\n${bad.join('\r\n')}`
  const first = await ingest('orders.ndjson', all)
  expect(first).toMatchObject({
    status: 3,
    told: { rows: 1_207, created: 1_200, updated: 0, unchanged: 2, rejected: 5 },
  })
  expect(first.refused).toEqual([
    'line,order_id,outcome,code,reason,field',
    '1205,order-1,REJECTED,400,field_value,status',
    '1206,,REJECTED,400,row_json,',
    '1207,,REJECTED,400,row_json,',
    '1208,,REJECTED,400,row_json,',
    `1209,'=cmd(),REJECTED,400,field_required,orderReference`,
  ])
  const stored = await bench.rows<{ status: string }>(`select status from tokenmill.order where order_id = 'order-3'`)
  expect(stored).toEqual([{ status: 'COMPLETED' }])
  // The same orders again, compressed, change nothing.
  const again = await ingest('orders.ndjson.gz', gzipSync(lines(orders)))
  expect(again).toMatchObject({
    status: 0,
    told: { rows: 1_200, created: 0, updated: 0, unchanged: 1_200, rejected: 0 },
  })
  const moved = { ...orderOf(4), modifiedDate: '2026-12-01T00:00:00Z' }
  expect(await ingest('moved.ndjson', lines([moved]))).toMatchObject({ status: 0, told: { updated: 1 } })
})

it('says what is wrong with a file, and leaves no results of it', async () => {
  expect((await bench.cli(['ingest', 'orders', join(bench.dataDir, 'absent.ndjson')])).status).toBe(64)
  expect(await ingest('empty.ndjson', '')).toMatchObject({ status: 1, refused: [''] })
  expect(await ingest('broken.ndjson.gz', 'not gzip')).toMatchObject({ status: 1, refused: [''] })
})
