// Rows that belong together are planned together.
import { tmpdir } from 'node:os'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { openChanges } from '../../../producers/diff/changes.ts'
import { openGroups } from '../../../producers/diff/groups.ts'
import type { FileRow } from '../../../producers/rows/outcome/result-row.ts'

const end = { line: 1, outcome: 'UNCHANGED', code: 200 } satisfies FileRow

it('plans each row that has a card or an owner in common with a planned one, and those that these lead to', () => {
  const anyRow = fc.record({
    card: fc.nat({ max: 6 }),
    owner: fc.option(fc.nat({ max: 6 }), { nil: undefined }),
    isPlanned: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(anyRow, { maxLength: 12 }), fc.constantFrom(20, 1e6), (rows, memoryBytesMax) => {
      const groups = openGroups({ memoryBytesMax, under: tmpdir() })
      try {
        const changes = openChanges()
        for (const [row, { card, owner, isPlanned }] of rows.entries()) {
          groups.add(row, [`card ${card}`, ...(owner === undefined ? [] : [`owner ${owner}`])])
          changes.add(end, isPlanned)
        }
        groups.spread(changes)
        const planned = rows.map(({ isPlanned }) => isPlanned)
        for (const _ of rows)
          for (const [one, a] of rows.entries())
            for (const [other, b] of rows.entries())
              if (planned[one] && (a.card === b.card || (a.owner !== undefined && a.owner === b.owner)))
                planned[other] = true
        expect(rows.map((_, row) => changes.isPlanned(row))).toEqual(planned)
      } finally {
        groups.close()
      }
    }),
    { numRuns: 60 },
  )
})
