// No card number and nothing of a security code in what goes beside the results, whatever a file holds in which column.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readRows } from '../../../../producers/rows/file-rows.ts'
import { headerOfRejects, textOfRejects } from '../../../../producers/rows/outcome/reject-row.ts'
import type { FileRow } from '../../../../producers/rows/outcome/result-row.ts'
import { returnWriter } from '../../../../producers/rows/outcome/return-row.ts'
import { refusePanLookalikes } from '../../../../producers/rows/pan-lookalikes.ts'
import { keptFieldsOf, rejectsFieldsOf } from '../../../../producers/rows/row-texts.ts'
import { testPan } from '../../../support/test-pan.ts'
import { collect, inPieces } from '../bytes.ts'
import { profile } from '../profile/profiled.ts'

const BY = profile({
  where: [{ field: 'kind', is_not: ['x'] }],
  drop: ['pin'],
  return: { columns: ['kind', 'note', 'id'].map(name => ({ name, from: name })) },
})
const PANS = [testPan(1), testPan(900_000), '5555555555554444', '378282246310005']
const pan = fc.constantFrom(...PANS)
const separator = fc.constantFrom('', ' ', '-', '.', '/')
const written = fc
  .tuple(pan, separator, fc.constantFrom('', 'old: ', 'é '))
  .map(([number, between, before]) => before + [...number].join(between))
const cell = fc.oneof(
  written,
  fc.constantFrom('', 'c1', 'card', '016153570198200', 'x', '-1', '12/30', '4111111111111111 12/27'),
)
const CODE = '73951'
const isWhole = (number: string) => /^[\d -]+$/.test(number) && /^\d{12,16}$/.test(number.replace(/\D/g, ''))

it('no number is in clear, and nothing of a code, wherever in the file it stands', async () => {
  const row = fc.record({
    id: cell,
    number: fc.oneof(pan, cell),
    month: fc.constantFrom('5', '13', ''),
    kind: cell,
    note: cell,
  })
  const keep = keptFieldsOf({ recordKind: 'token-create', profile: BY }, { rejects: true, back: true })
  const fields = rejectsFieldsOf({ recordKind: 'token-create', profile: BY })
  const columns = { profile: true, fields }
  const back = returnWriter(BY.return ?? { columns: [] }, fields.length)
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 8 }), async made => {
      const lines = made.map(one =>
        [one.id, one.number, one.month, '2030', 'ADA', one.kind, one.note, CODE, CODE].join(';'),
      )
      const text = ['id;number;month;year;name;kind;note;cvv;pin', ...lines, ''].join('\n')
      const by = { ...BY, format: { type: 'delimited' as const, delimiter: ';' } }
      const options = { format: 'csv', recordKind: 'token-create', profile: by, keep } as const
      const rows = refusePanLookalikes(await collect(readRows(inPieces(text), options)), { stored: true })
      const ends = rows.map(
        ({ line, reference }): FileRow => ({ line, reference, outcome: 'REJECTED', code: 400, reason: 'pan_luhn' }),
      )
      const rejects = headerOfRejects(columns) + textOfRejects(ends, rows, columns)
      expect(rejects.split('\n')).toHaveLength(made.length + 2)
      const numbers = new Set(made.map(one => one.number.replace(/\D/g, '')))
      for (const output of [rejects, back.header + back.textOf(ends, rows)]) {
        expect(output).not.toContain(CODE)
        expect(output).not.toContain('ADA')
        for (const [index, line] of output.split('\n').slice(1, -1).entries()) {
          // If the row's own number isn't a card number, columns may be shifted, so its card isn't known.
          const isKnown = isWhole(made[index]?.number ?? '')
          // The last cell of a row and the first one of the next don't make a number.
          for (const shown of line.split(',')) {
            const digits = shown.replace(/\D/g, '')
            expect(PANS.filter(pan => digits.includes(pan) && (!isKnown || numbers.has(pan)))).toEqual([])
          }
        }
      }
    }),
    { numRuns: 300 },
  )
})
