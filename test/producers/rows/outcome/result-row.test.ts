import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readCsv } from '../../../../producers/rows/csv.ts'
import { headerOf, textOf } from '../../../../producers/rows/outcome/result-row.ts'
import { collect, inPieces } from '../bytes.ts'
import { created, rejected, TOKEN } from './ended-rows.ts'

describe('the results CSV', () => {
  it('has one line per row, in the columns of the contract', () => {
    expect((headerOf({}) + textOf([created, rejected], {})).split('\n')).toEqual([
      'line,reference,outcome,code,reuse_token,analytics_token,bin,last_four,expiry_month,expiry_year,brand,reason',
      `2,c-1,CREATED,200,${TOKEN},a1,41111111,1111,5,2027,VISA,`,
      '3,,REJECTED,400,,,,,,,,pan_luhn',
      '',
    ])
  })

  it('adds token_status, failed_facet and echoed columns where they are asked for', () => {
    const columns = { tokenStatus: true, failedFacet: true, echo: ['city', '=x'] }
    expect(headerOf(columns)).toMatch(/,reason,token_status,failed_facet,city,'=x\n$/)
    const rows = [{ ...created, token_status: 'ACTIVE', echo: ['Köln', '=1'] }, rejected]
    const [first, second] = textOf(rows, columns).split('\n')
    expect(first).toMatch(/,ACTIVE,,Köln,'=1$/)
    expect(second).toMatch(/,pan_luhn,,token,,$/)
  })

  it.each(['=1+1', '+1', '-1', '@x', '\tx', '\rx', '\n=x', '＝1', '＋1', '－1', '＠x', '=1,"2"'])(
    'keeps a spreadsheet from taking %j for a formula, and changes nothing else',
    async reference => {
      const [row] = await collect(readCsv(inPieces(textOf([{ ...created, reference }], {}))))
      expect(row?.fields[1]).toBe(`'${reference}`)
    },
  )

  it('reads back any text that is no formula', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 20 }).map(value => `x${value.replace(/\0/g, '')}`)
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 4 }), async echo => {
        const written = textOf([{ ...created, reference: echo[0], echo }], { echo })
        const [row] = await collect(readCsv(inPieces(written)))
        expect([row?.fields[1], ...(row?.fields.slice(12) ?? [])]).toEqual([echo[0], ...echo])
      }),
    )
  })
})
