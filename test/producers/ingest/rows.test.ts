import { describe, expect, it } from 'vitest'
import { read } from './read.ts'

const HEADER = 'transaction_uid,entity_uid,type,currency,created_at,amount,description'

describe('a row of the ledger that cannot be read as a whole', () => {
  it('keeps its id where that cell is sound', async () => {
    const rest = Buffer.from([...Buffer.from(',e,PAYMENT,EUR,2026-01-01,1.00,caf'), 0xe9, 0x0a])
    const ids = [Buffer.from('tx-é'), Buffer.from('tx-é', 'latin1'), Buffer.from('4111111111111111')]
    const text = Buffer.concat([Buffer.from(`${HEADER}\n`), ...ids.flatMap(id => [id, rest]), Buffer.from('tx-4,e\n')])
    const { rows } = await read(text, { format: 'csv', ignoreUnknown: true })
    expect(rows.map(({ row }) => ('reason' in row ? [row.line, row.reason, row.uid] : row))).toEqual([
      [2, 'row_utf8', 'tx-é'],
      [3, 'row_utf8', ''],
      [4, 'row_utf8', ''],
      [5, 'row_fields', ''],
    ])
  })
})
