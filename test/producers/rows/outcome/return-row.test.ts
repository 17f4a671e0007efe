import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readCsv } from '../../../../producers/rows/csv.ts'
import type { FileRow } from '../../../../producers/rows/outcome/result-row.ts'
import { returnWriter } from '../../../../producers/rows/outcome/return-row.ts'
import { EXPIRY_FORMS, expiryReader } from '../../../../producers/rows/profile/expiry-form.ts'
import type { ReturnShape } from '../../../../producers/rows/profile/return-shape.ts'
import { type Row, rejectRow, skipRow } from '../../../../producers/rows/record.ts'
import { testPan } from '../../../support/test-pan.ts'
import { collect, inPieces } from '../bytes.ts'
import { created, rejected } from './ended-rows.ts'

const SKIPPED: FileRow = { line: 4, outcome: 'SKIPPED', reason: 'no_card' }
const WORDS = Object.fromEntries(
  ['CREATED', 'UPDATED', 'UNCHANGED', 'DUPLICATE', 'REJECTED', 'FAILED', 'CANCELLED', 'SKIPPED'].map(outcome => [
    outcome,
    outcome === 'CREATED' ? 'Success' : 'Error',
  ]),
)
const given = (number: string, ...kept: string[]): Row => ({
  ...rejectRow(2, 'pan_luhn', 'r', undefined, number),
  kept,
})
const write = (shape: ReturnShape, rows: readonly FileRow[], all: readonly Row[], keptAt = 0) => {
  const writer = returnWriter(shape, keptAt)
  return writer.header + writer.textOf(rows, all)
}

describe('the file that goes back', () => {
  it('has the declared columns: fields of the input, constants, and values of the row’s end in their words', () => {
    const shape: ReturnShape = {
      columns: [
        { name: 'status', value: 'outcome', words: WORDS },
        { name: 'old', value: 'reference' },
        { name: 'new', value: 'reuse_token' },
        { name: 'kind', value: 'brand', words: { VISA: 'visa' } },
        { name: 'customer', from: 'customer' },
        { name: 'none', constant: '' },
        { name: 'until', value: 'expiry', form: 'MM/YY' },
        { name: 'why', value: 'reason' },
      ],
    }
    // The first kept text belongs to another file.
    const rows = [given('4111111111111111', 'x', 'cus_1'), given('1', 'x', 'cus_2'), skipRow(4, 'no_card')]
    expect(write(shape, [created, rejected, SKIPPED], rows, 1).split('\n')).toEqual([
      'status,old,new,kind,customer,none,until,why',
      `Success,c-1,${created.reuse_token},visa,cus_1,,05/27,`,
      'Error,,,,cus_2,,,pan_luhn',
      'Error,,,,,,,no_card',
      '',
    ])
  })

  it('holds the rows that took effect alone where the shape says so', () => {
    const shape: ReturnShape = { rows: 'took_effect', columns: [{ name: 'old', value: 'reference' }] }
    const all = [given('1'), given('2'), skipRow(4, 'no_card')]
    expect(write(shape, [rejected, created, SKIPPED], all)).toBe('old\nc-1\n')
  })

  it('writes an expiry so that a reader of that form finds it again', () => {
    for (const form of EXPIRY_FORMS) {
      const text = write({ columns: [{ name: 'e', value: 'expiry', form }] }, [created], [given('1')]).split('\n')[1]
      expect(expiryReader(form, undefined)(text ?? ''), `${form}: ${text}`).toEqual({ month: 5, year: 2027 })
    }
    const parts = (['M', 'MM'] as const).map(form => ({ name: form, value: 'expiry_month', form }) as const)
    const years = (['YY', 'YYYY'] as const).map(form => ({ name: form, value: 'expiry_year', form }) as const)
    expect(write({ columns: [...parts, ...years] }, [created], [given('1')])).toBe('M,MM,YY,YYYY\n5,05,27,2027\n')
  })

  it('is exact: any text is read back as it was, formulas too, with any delimiter and quotes', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 20 }).map(value => `-${value.replace(/\0/g, '')}`)
    const delimiter = fc.constantFrom(',', ';', '\t', '|')
    const quotes = fc.constantFrom('where_needed', 'always')
    await fc.assert(
      fc.asyncProperty(delimiter, quotes, fc.array(text, { minLength: 1, maxLength: 4 }), async (sign, how, texts) => {
        const columns = texts.map((_, index) => ({ name: `c${index}`, from: `f${index}` }))
        const written = write({ delimiter: sign, quotes: how, columns }, [created], [given('1', ...texts)])
        const dialect = { delimiter: sign, quotes: 'doubled' as const }
        const [, row] = await collect(readCsv(inPieces(written), { dialect }))
        expect(row?.fields).toEqual(texts)
      }),
    )
  })

  it('leaves a cell empty that would show the row’s card, or one like another card of its chunk, and keeps other ids', () => {
    const shape: ReturnShape = { columns: [{ name: 'id', from: 'id' }] }
    const cells = (rows: Row[]) =>
      write(
        shape,
        rows.map(() => created),
        rows,
      )
        .split('\n')
        .slice(1, -1)
    const own = testPan(1)
    expect(cells([given(own, `x ${own.replace(/(....)/g, '$1-')}`)])).toEqual([''])
    expect(cells([given(own, testPan(2)), given(testPan(2), '016153570198200')])).toEqual(['', '016153570198200'])
    // A text that was cut is no id.
    expect(cells([given(own, `${'x'.repeat(1_000)}…`), given(own, 'x'.repeat(1_000))])).toEqual(['', 'x'.repeat(1_000)])
    // The card of a row without a number isn't known.
    expect(cells([given('', own), given('', 'cus_7')])).toEqual(['', 'cus_7'])
    // The text of a row whose columns are shifted isn't written either: a number with its expiry, one that fails its
    // Luhn check, one that is mistyped.
    for (const text of [`${own} 12/27`, '6212345678901234', '4111111111111112']) {
      expect(cells([given('visa', text)])).toEqual([''])
      expect(cells([given(`${own}|123`, text)])).toEqual([''])
      expect(cells([given(`${own} 123`, text)])).toEqual([''])
    }
    expect(cells([given('4000 0000-0000 0000 006', '016153570198200')])).toEqual(['016153570198200'])
  })
})
