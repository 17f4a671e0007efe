import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readDecisions } from '../../../producers/pack/decisions.ts'
import { openExceptions } from '../../../producers/pack/exceptions.ts'
import { LISTED_MAX } from '../../../producers/pack/packed-total.ts'
import { testPan } from '../../support/test-pan.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-decisions-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const HEADER = 'batch_id,line,reference,decision,by,on,note'
async function decided(lines: readonly string[], batches: readonly string[] = ['b-1'], header = HEADER) {
  const path = join(folder, 'decisions.csv')
  await writeFile(path, [header, ...lines, ''].join('\n'))
  return readDecisions(path, { packPath: join(folder, 'x.pack.json'), batches })
}
const row = (line: number, reference: string | null, batchId = 'b-1', item: string | null = null) => ({
  batchId,
  line,
  item,
  reference,
})

describe('a file of decisions', () => {
  it('names rows by line, by reference, or by both where several cards stand in one line', async () => {
    const found = await decided([
      ',7,,drop,Ann,2030-01-31,',
      ',,c_2,keep,Ann,2030-01-31T12:00:00Z,a note',
      ",,'=c_3,guarded,Ann,2030-01-31,",
      ',9,c_4,both,Ann,2030-01-31,',
    ])
    expect(found.find(row(7, 'c_1'))).toEqual({ decision: 'drop', by: 'Ann', on: '2030-01-31' })
    expect(found.find(row(8, 'c_2'))).toMatchObject({ decision: 'keep', note: 'a note' })
    for (const reference of ['=c_3', "'=c_3"])
      expect(found.find(row(10, reference))).toMatchObject({ decision: 'guarded' })
    expect(found.find(row(9, 'c_5'))).toBeUndefined()
    expect(found.unused()).toEqual([5])
    expect(found.find(row(9, 'c_4'))).toMatchObject({ decision: 'both' })
    expect(found.unused()).toEqual([])
    expect(found.file.name).toBe('decisions.csv')
  })

  it('names a row that has an item by that, because a line may have several', async () => {
    const found = await decided(
      [',1,,,all of the line,Ann,2030-01-31,', ',1,2.1,,item,Ann,2030-01-31,', ',,3.1,,alone,Ann,2030-01-31,'],
      ['b-1'],
      'batch_id,line,item,reference,decision,by,on,note',
    )
    expect(found.find(row(1, 'c_1', 'b-1', '1.1'))).toBeUndefined()
    expect(found.find(row(1, 'c_2', 'b-1', '2.1'))).toMatchObject({ decision: 'item' })
    expect(found.find(row(2, 'c_2', 'b-1', '2.1'))).toBeUndefined()
    expect(found.find(row(1, null, 'b-1', '3.1'))).toMatchObject({ decision: 'alone' })
    expect(found.unused()).toEqual([2])
  })

  it('tells the lines of several batches apart', async () => {
    const two = ['b-1', 'b-2']
    const found = await decided(['b-2,7,,drop,Ann,2030-01-31,'], two)
    expect(found.find(row(7, null, 'b-1'))).toBeUndefined()
    expect(found.find(row(7, null, 'b-2'))).toMatchObject({ decision: 'drop' })
    await expect(decided([',7,,drop,Ann,2030-01-31,'], two)).rejects.toThrow(/line 2 .*add batch_id/)
    await expect(decided(['b-3,7,,drop,Ann,2030-01-31,'], two)).rejects.toThrow(/not in the pack/)
  })

  it.each([
    [
      'a line that decides twice',
      [',7,,drop,Ann,2030-01-31,', ',7,,keep,Ann,2030-01-31,'],
      /line 3 decides the same rows as line 2/,
    ],
    ['a decision of nobody', [',7,,drop,,2030-01-31,'], /line 2 has no usable by/],
    ['a day that is none', [',7,,drop,Ann,2030-02-31,'], /no usable on/],
    ['a row without a name', [',,,drop,Ann,2030-01-31,'], /neither a line nor a reference/],
    [
      'more words than people read',
      Array.from({ length: 101 }, (_, index) => `,${index + 2},,w${index},Ann,2030-01-31,`),
      /line 102 brings more than 100 different decisions/,
    ],
    ['a row that is cut', [',7,,drop'], /no row of CSV/],
    ['a card number', [`,7,,drop,Ann,2030-01-31,${testPan(1)}`], /could be a card number/],
  ])('is refused with %s, and no content is quoted', async (_, lines, pattern) => {
    const error: Error = await decided(lines).catch(thrown => thrown)
    expect(error.message).toMatch(pattern)
    expect(error.message).not.toContain('4111')
  })

  it('is refused with other columns', async () => {
    await expect(decided([], ['b-1'], 'line,decision,by')).rejects.toThrow(/must name decision, by, on/)
    await expect(decided([], ['b-1'], 'line,decision,by,on,pan')).rejects.toThrow(/names a column that is none of/)
  })
})

it('exceptions beyond the limit are counted and not listed', async () => {
  const exceptions = openExceptions(await decided([',5,,drop,Ann,2030-01-31,']))
  const ended = (line: number, outcome: 'FAILED' | 'CREATED') => ({
    line,
    item: null,
    number: line,
    reference: null,
    outcome,
    reason: null,
    brand: null,
    expiryYear: null,
  })
  for (let line = 2; line < LISTED_MAX + 12; line++) exceptions.add('b-1', ended(line, 'FAILED'), undefined)
  exceptions.add('b-1', ended(9_999, 'CREATED'), undefined)
  exceptions.add('b-1', ended(9_998, 'CREATED'), 'expiry_differs')
  const all = exceptions.all()
  expect(all).toMatchObject({ rows: LISTED_MAX + 11, decided: 1, open: LISTED_MAX + 10 })
  expect(all.listed_open).toHaveLength(LISTED_MAX)
})
