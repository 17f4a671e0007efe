import { describe, expect, it } from 'vitest'
import { onlyReason, openEarlyWord } from '../../../../producers/rows/outcome/early-word.ts'
import { noCounts } from '../../../../src/job/outcome.ts'

const rejected = (n: number, more = {}) => ({ ...noCounts(), REJECTED: n, ...more })

describe('the early word', () => {
  it('names the reason and its likely cause once, where every row so far has it', () => {
    const said: string[] = []
    const word = openEarlyWord(line => said.push(line))
    word.see(rejected(19), { REJECTED: { row_utf8: 19 } })
    expect(said).toEqual([])
    word.see(rejected(500), { REJECTED: { row_utf8: 500 } })
    word.see(rejected(1_000), { REJECTED: { row_utf8: 1_000 } })
    expect(said).toEqual([
      'all 500 rows so far are rejected: row_utf8. The row is not valid UTF-8. Likely cause: a wrong encoding (Windows-1252 or Latin-1); export the file as UTF-8. Ctrl-C stops this run.',
    ])
  })

  it('says nothing where rows end for several reasons, or some ended well', () => {
    expect(onlyReason(rejected(100), { REJECTED: { pan_luhn: 99, row_utf8: 1 } })).toBeUndefined()
    expect(onlyReason(rejected(99, { CREATED: 1 }), { REJECTED: { pan_luhn: 99 } })).toBeUndefined()
    expect(onlyReason(rejected(0, { CREATED: 100 }), {})).toBeUndefined()
  })

  it('says it of rows that failed, and of reasons that a newer worker invented', () => {
    expect(onlyReason({ ...noCounts(), FAILED: 20 }, { FAILED: { internal: 20 } })).toEqual({
      outcome: 'failed',
      reason: 'internal',
    })
    const said: string[] = []
    openEarlyWord(line => said.push(line)).see(rejected(20), { REJECTED: { new_reason: 20 } })
    expect(said).toEqual(['all 20 rows so far are rejected: new_reason. Ctrl-C stops this run.'])
  })
})
