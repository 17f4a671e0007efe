import { describe, expect, it } from 'vitest'
import { read, readSlowly } from './read.ts'

const HEADER = 'transaction_uid,entity_uid,type,currency,created_at,amount,description'

describe('a row of the ledger with a whole card number in place of a masked one or of an id', () => {
  it('is refused before it is sent, and the number is not told', async () => {
    const rows = [
      ['tx-1', '4111111111111111'],
      ['tx-2', '4111 1111 1111 1111'],
      ['4111111111111111', '411111******1111'],
      ['tx-4', '411111******1111'],
    ]
    const text = rows.map(([uid, masked]) => `${uid},e,SALE,EUR,2026-01-01,1.00,${masked}`).join('\n')
    const read = await readSlowly(`${HEADER.replace('description', 'masked_card')}\n${text}\n`, { format: 'csv' })
    expect(read.map(({ row }) => row).slice(0, 3)).toEqual([
      { line: 2, uid: 'tx-1', reason: 'field_format', field: 'masked_card' },
      { line: 3, uid: 'tx-2', reason: 'field_format', field: 'masked_card' },
      { line: 4, uid: '', reason: 'field_format', field: 'transaction_uid' },
    ])
    expect(read[3]?.row).toMatchObject({ transaction: { masked_card: '411111******1111' } })
  })
})

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
