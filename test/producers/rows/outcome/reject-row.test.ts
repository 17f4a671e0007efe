import { describe, expect, it } from 'vitest'
import { headerOfRejects, textOfRejects } from '../../../../producers/rows/outcome/reject-row.ts'
import { type Row, rejectRow, skipRow } from '../../../../producers/rows/record.ts'
import { created } from './ended-rows.ts'

const COLUMNS = { profile: true, fields: ['city', '=note'].map(field => ({ field, path: '--rejects' })) }
const PAN = '4111111111111111'
const given = (changes: Partial<Row> = {}): Row => ({
  ...rejectRow(3, 'pan_luhn', 'r-3', undefined, PAN),
  item: '',
  repairs: [],
  kept: ['Köln', 'x'],
  ...changes,
})
const rejected = { line: 3, reference: 'r-3', outcome: 'REJECTED', code: 400, reason: 'pan_luhn' } as const
const text = (row: Row, end: object = rejected) => textOfRejects([{ ...rejected, ...end }], [row], COLUMNS)

describe('the rejected rows', () => {
  it('have the places of results, the reason, the ends of the number and the columns of the file', () => {
    expect(headerOfRejects(COLUMNS)).toBe("line,item,outcome,reason,field,reference,bin,last_four,city,'=note\n")
    expect(headerOfRejects({ ...COLUMNS, profile: false })).toMatch(/^line,outcome/)
    expect(text(given(), { field: 'body.card.cardNumber' })).toBe(
      '3,,REJECTED,pan_luhn,body.card.cardNumber,r-3,411111,1111,Köln,x\n',
    )
    expect(text(given(), { fileLine: 1, item: '17.2' })).toMatch(/^1,17\.2,/)
  })

  it('are those that were rejected or failed, and no others', () => {
    const failed = { ...rejected, outcome: 'FAILED', code: 500, reason: 'internal' } as const
    const skipped = { line: 4, outcome: 'SKIPPED', reason: 'no_card' } as const
    const cancelled = { ...rejected, outcome: 'CANCELLED' } as const
    const rows = [created, failed, skipped, cancelled, rejected]
    const all = [given(), given(), skipRow(4, 'no_card'), given(), given()]
    expect(
      textOfRejects(rows, all, COLUMNS)
        .split('\n')
        .map(line => line.slice(0, 12)),
    ).toEqual(['3,,FAILED,in', '3,,REJECTED,', ''])
  })

  it('have line and reason alone where the row couldn’t be split', () => {
    for (const reason of ['row_fields', 'row_json', 'row_utf8', 'element_too_large'] as const) {
      const row = { ...rejectRow(3, reason, 'r-3'), item: '2', repairs: [] }
      expect(text(row, { reason, item: '2' })).toBe(`3,2,REJECTED,${reason},,,,,,\n`)
    }
    // This one could be, and only its value was no text.
    expect(text(rejectRow(3, 'field_type', 'r-3'), { reason: 'field_type' })).toBe('3,,REJECTED,field_type,,r-3,,,,\n')
  })

  it('mask what could be a card number, and guard formulas', () => {
    expect(text(given({ kept: ['4111 1111 1111 1111', '=1+1'] }))).toContain(",**** **** **** ****,'=1+1\n")
    expect(text(given({ kept: ['"a", b', 'x\n'] }))).toContain(',"""a"", b","x\n"')
  })

  it('show ends of a number only where it is one, and of a short one no more than ten digits', () => {
    const ends = (number: string) => text(given({ number })).split(',').slice(6, 8)
    expect(ends('4111 1111 1111 1112')).toEqual(['411111', '1112'])
    expect(ends('500000000009')).toEqual(['500000', '0009'])
    for (const number of ['', '41111111111', '41111111111111111111', 'Ada']) expect(ends(number)).toEqual(['', ''])
  })

  it('show nothing of a security code or an expiry that stands behind a number', () => {
    const ends = (number: string) => text(given({ number })).split(',').slice(6, 8)
    const behind = ['4111111111111111|123', '4111111111111111 123', '378282246310005/1234', '3782822463100051234']
    for (const number of [...behind, '378282246310005-1230', '30569309025904123', '4111111111111111 (12)'])
      expect(ends(number), number).toEqual(['', ''])
    // It passes Luhn by chance.
    expect(ends('4111 1111 1111 1111 110')).toEqual(['', ''])
    expect(ends('6212345678901234 123')).toEqual(['', ''])
    expect(ends('4000 0000 0000 0000 006')).toEqual(['400000', '0006'])
  })

  it('repeat no reference that could be a card where nobody knows the row’s card', () => {
    const reference = PAN
    expect(text(given({ number: '12/30', reference }), { reference })).not.toContain(PAN)
    expect(
      text(given({ number: '5555555555554444', reference: '100000000001' }), { reference: '100000000001' }),
    ).toContain(',100000000001,')
  })
})
