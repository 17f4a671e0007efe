import { describe, expect, it } from 'vitest'
import { noFileCounts } from '../../../../producers/rows/file-outcome.ts'
import type { FileRow } from '../../../../producers/rows/outcome/result-row.ts'
import { openSeriesWord } from '../../../../producers/rows/outcome/series-word.ts'

function heard() {
  const said: string[] = []
  const counts = noFileCounts()
  const word = openSeriesWord(line => said.push(line))
  let line = 1
  const see = (outcome: 'CREATED' | 'REJECTED' | 'SKIPPED', n: number, reason?: string) => {
    const rows = Array.from({ length: n }, () => ({ line: ++line, outcome, code: 200, reason }) as FileRow)
    counts[outcome] += n
    word.see(rows, counts)
  }
  return { said, see }
}

describe('the word about a series of rejected rows', () => {
  it('names the line from which on no row fits, once, and passes over skipped rows', () => {
    const { said, see } = heard()
    see('CREATED', 10)
    see('REJECTED', 600, 'row_fields')
    see('SKIPPED', 5)
    expect(said).toEqual([])
    see('REJECTED', 600, 'row_fields')
    see('REJECTED', 600, 'row_fields')
    expect(said).toEqual([
      expect.stringMatching(/^from line 12 on all 1200 rows so far are rejected: row_fields\. .*--max-rejected/),
    ])
  })

  it('names the most frequent of several reasons', () => {
    const { said, see } = heard()
    see('CREATED', 1)
    see('REJECTED', 300, 'pan_luhn')
    see('REJECTED', 700, 'pan_format')
    expect(said).toEqual([expect.stringContaining('rejected, most of them so: pan_format.')])
  })

  it('says nothing of shorter series, nor of a file of which no row fits', () => {
    const short = heard()
    for (let times = 0; times < 3; times++) {
      short.see('REJECTED', 900, 'row_fields')
      short.see('CREATED', 1)
    }
    const none = heard()
    none.see('REJECTED', 5_000, 'row_fields')
    expect([...short.said, ...none.said]).toEqual([])
  })

  it('says it of each series anew, but not for ever', () => {
    const { said, see } = heard()
    for (let times = 0; times < 9; times++) {
      see('CREATED', 1)
      see('REJECTED', 1_000, 'row_fields')
    }
    expect(said).toHaveLength(5)
  })
})
