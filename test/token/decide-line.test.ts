import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRefusal } from '../../src/errors.ts'
import type { BatchLine, OnConflict, OnExpired } from '../../src/token/batch-order.ts'
import { addType } from '../../src/token/card-fields.ts'
import { create, type Given } from '../../src/token/decide.ts'
import type { TokenRow } from '../../src/token/token.ts'
import { given } from './batch/given.ts'
import { batchLine, context, decided, facts, NOW, rowOf, stored } from './samples.ts'

interface Line {
  line: number
  given: Given
}

type Policy = { onConflict: OnConflict; onExpired: OnExpired } & Partial<Pick<BatchLine, 'batchNo' | 'former'>>

/** Applies lines in the given order, each to the row as it was saved, with its mark. */
function apply(lines: readonly Line[], policy: Policy, row: TokenRow | undefined) {
  const outcomes: string[] = []
  for (const { line, given } of lines) {
    const card = facts({ brand: given.cardBrand ?? 'VISA' })
    const batch: BatchLine = batchLine(line, policy)
    const verdict = create(row, given, card, context({ batch, receiptId: `receipt-${line}`, now: NOW + line }))
    if (isRefusal(verdict)) {
      outcomes.push(verdict.reason)
      continue
    }
    outcomes.push(verdict.outcome)
    if (!verdict.changed && !verdict.marked) continue
    expect(verdict.row.version).toBe((row?.version ?? 0) + 1)
    // The mark goes through the store as JSON.
    row = { ...verdict.row, mark: JSON.parse(JSON.stringify(verdict.row.mark)) as TokenRow['mark'] }
    if (verdict.needsSeal) row = stored(row)
  }
  return { outcomes, row }
}

function dataOf(row: TokenRow | undefined) {
  if (!row) return undefined
  const { createdAt: _c, updatedAt: _u, version: _v, lastReceipt: _l, mark: _m, ...data } = row
  return data
}

const inAnyOrder = fc
  .uniqueArray(fc.record({ line: fc.integer({ min: 1, max: 2 ** 31 - 1 }), given }), {
    selector: ({ line }) => line,
    minLength: 1,
    maxLength: 6,
  })
  .chain(lines =>
    fc.shuffledSubarray(lines, { minLength: lines.length }).map(shuffled => ({
      inFile: lines.toSorted((a, b) => a.line - b.line),
      shuffled,
    })),
  )

/** No row, an ordinary one, one that another batch has marked, and one that had expired. */
const before = fc.option(
  fc
    .tuple(
      given,
      fc.constantFrom<Partial<TokenRow>>(
        {},
        { mark: { batchNo: 6, created: true, line: 9, lines: null } },
        { status: 'SUSPENDED', suspendedReason: 'EXPIRED' },
        { status: 'SUSPENDED', suspendedReason: 'REQUEST' },
      ),
    )
    .map(([data, over]) => rowOf(data, over)),
  { nil: undefined },
)

describe('records of one card within one batch', () => {
  const policies = (['update', 'keep', 'reject', 'latest-expiry'] as const).flatMap(onConflict =>
    (['import', 'suspend', 'reject'] as const).map(onExpired => ({ onConflict, onExpired })),
  )

  it.each(policies)('under $onConflict and $onExpired end as in file order, in whatever order they come', policy => {
    fc.assert(
      fc.property(inAnyOrder, before, ({ inFile, shuffled }, row) => {
        expect(dataOf(apply(shuffled, policy, row).row)).toEqual(dataOf(apply(inFile, policy, row).row))
      }),
      { numRuns: 400 },
    )
  })

  it.each(policies)('under $onConflict and $onExpired have as many outcomes of each kind in any order', policy => {
    fc.assert(
      fc.property(inAnyOrder, before, ({ inFile, shuffled }, row) => {
        const tally = (lines: readonly Line[]) =>
          apply(lines, policy, row)
            .outcomes.map(outcome => (outcome === 'UPDATED' ? 'UNCHANGED' : outcome))
            .sort()
        expect(tally(shuffled)).toEqual(tally(inFile))
      }),
      { numRuns: 100 },
    )
  })

  it.each(policies)('under $onConflict and $onExpired change nothing when they come again', policy => {
    fc.assert(
      fc.property(inAnyOrder, before, ({ shuffled }, row) => {
        const frozen = row && Object.freeze(row)
        const once = apply(shuffled, policy, frozen).row
        const twice = apply(shuffled, policy, once)
        expect(dataOf(twice.row)).toEqual(dataOf(once))
        expect(twice.row?.version).toBe(once?.version)
      }),
      { numRuns: 100 },
    )
  })

  /** Card data and status; `changed` counts what a run has changed. */
  const inRuns = fc.tuple(inAnyOrder, fc.integer(), fc.integer()).map(([{ inFile, shuffled }, ...seeds]) => {
    const [second, third] = seeds.map(seed => inFile.toSorted((a, b) => order(a.line, seed) - order(b.line, seed)))
    return { first: shuffled, second: second ?? [], third: third ?? [] }
  })
  const order = (line: number, seed: number) => Math.imul(line ^ seed, 0x9e3779b1)

  it.each(policies)(
    'under $onConflict and $onExpired change nothing when their file is migrated again, in any order',
    policy => {
      fc.assert(
        fc.property(inRuns, before, ({ first, second, third }, row) => {
          const once = apply(first, policy, row).row
          const again = apply(second, { ...policy, batchNo: 8, former: new Set([7]) }, once)
          expect(dataOf(again.row)).toEqual(dataOf(once))
          expect(again.row?.updatedAt).toBe(once?.updatedAt)
          expect(again.outcomes).not.toContain('UPDATED')
          if (!row) expect(again.outcomes).not.toContain('conflict')
          const last = apply(third, { ...policy, batchNo: 9, former: new Set([7, 8]) }, again.row)
          expect(last.row?.updatedAt).toBe(once?.updatedAt)
        }),
        { numRuns: 200 },
      )
    },
  )

  it('under update restore what somebody else changed between two runs of their file, as without the first run', () => {
    const policy = { onConflict: 'update', onExpired: 'import' } as const
    fc.assert(
      fc.property(inRuns, given, ({ first, second }, data) => {
        const once = apply(first, policy, undefined).row
        const card = facts({ brand: data.cardBrand ?? 'VISA' })
        const mark = once?.mark ?? null
        const patched = once && stored(decided(create(once, data, card, context())).row)
        const marked = patched && { ...patched, mark }
        const withMark = apply(second, { ...policy, batchNo: 8, former: new Set([7]) }, marked).row
        const without = apply(
          second.toSorted((a, b) => a.line - b.line),
          { ...policy, batchNo: 8 },
          patched,
        ).row
        expect(dataOf(withMark)).toEqual(dataOf(without))
      }),
      { numRuns: 200 },
    )
  })

  it('under update are what plain PUTs in file order make of the card', () => {
    const policy = { onConflict: 'update', onExpired: 'import' } as const
    fc.assert(
      fc.property(inAnyOrder, before, ({ inFile, shuffled }, row) => {
        let plain = row
        for (const { given: data } of inFile) {
          plain = stored(decided(create(plain, data, facts({ brand: data.cardBrand ?? 'VISA' }), context())).row)
        }
        expect(dataOf(apply(shuffled, policy, row).row)).toEqual(dataOf(plain))
      }),
    )
  })
})

/** The data that a single create would store for a card without a token. */
const made = (data: Given) =>
  dataOf(stored(decided(create(undefined, data, facts({ brand: data.cardBrand ?? 'VISA' }), context())).row))

describe('records of one card that isn’t on file', () => {
  it.each(['keep', 'reject'] as const)('under %s are what the first line of the file makes alone', onConflict => {
    fc.assert(
      fc.property(inAnyOrder, ({ inFile, shuffled }) => {
        const { row } = apply(shuffled, { onConflict, onExpired: 'import' }, undefined)
        expect(dataOf(row)).toEqual(made(inFile[0]?.given ?? {}))
      }),
    )
  })

  it('under latest-expiry take each field from the latest expiry that gives it, of equal ones the earlier line', () => {
    const rank = ({ expiryYear = 0, expiryMonth = 0 }: Given) => expiryYear * 12 + expiryMonth
    fc.assert(
      fc.property(inAnyOrder, ({ inFile, shuffled }) => {
        const byExpiry = inFile.toSorted((a, b) => rank(a.given) - rank(b.given) || b.line - a.line)
        const merged: Given = Object.assign({}, ...byExpiry.map(({ given: data }) => data))
        const types = inFile.map(({ given: data }) => data.tokenType ?? 'REUSE')
        const { row } = apply(shuffled, { onConflict: 'latest-expiry', onExpired: 'import' }, undefined)
        expect(dataOf(row)).toEqual(made({ ...merged, tokenType: types.reduce(addType) }))
      }),
    )
  })
})

const one = (row: TokenRow | undefined, data: Given, policy: Partial<BatchLine> = {}, line = 5) =>
  create(
    row,
    data,
    facts({ brand: data.cardBrand ?? 'VISA' }),
    context({ batch: batchLine(line, policy), field: 'body.card' }),
  )

describe('a record whose card has expired', () => {
  const past = { expiryMonth: 10, expiryYear: 2026 }
  it('is refused where the batch refuses those', () => {
    expect(one(undefined, past, { onExpired: 'reject' })).toEqual({
      refused: true,
      reason: 'card_expired',
      field: 'body.card',
    })
    expect(one(rowOf(), past, { onExpired: 'reject' })).toHaveProperty('reason', 'card_expired')
  })

  it('is judged by the moment of acceptance', () => {
    const acceptedAt = Date.UTC(2026, 10, 1) - 1
    expect(isRefusal(one(undefined, past, { onExpired: 'reject', acceptedAt }))).toBe(false)
  })

  it('makes a suspended token where the batch says so, and suspends none that is there', () => {
    const suspended = { status: 'SUSPENDED', suspendedReason: 'CARD_EXPIRED' }
    expect(decided(one(undefined, past, { onExpired: 'suspend' })).row).toMatchObject(suspended)
    expect(decided(one(rowOf(), past, { onExpired: 'suspend' })).row.status).toBe('ACTIVE')
    expect(decided(one(undefined, past, { onExpired: 'import' })).row.status).toBe('ACTIVE')
  })
})

describe('a record whose card is on file', () => {
  const held = rowOf({ expiryMonth: 1, expiryYear: 2028, cardHolderName: 'A' })

  it('under reject is refused if a given field differs, and else changes nothing', () => {
    expect(one(held, { cardHolderName: 'B' }, { onConflict: 'reject' })).toEqual({
      refused: true,
      reason: 'conflict',
      field: 'body.card',
    })
    expect(one(held, { tokenType: 'ANALYTICS' }, { onConflict: 'reject' })).toHaveProperty('reason', 'conflict')
    expect(one(held, { cardBrand: 'CB' }, { onConflict: 'reject' })).toHaveProperty('reason', 'conflict')
    expect(one(held, { cardBrand: 'VISA' }, { onConflict: 'reject' })).toHaveProperty('outcome', 'UNCHANGED')
    expect(one(held, { cardHolderName: 'A' }, { onConflict: 'reject' })).toHaveProperty('outcome', 'UNCHANGED')
  })

  it('under keep changes nothing', () => {
    const verdict = decided(one(held, { cardHolderName: 'B' }, { onConflict: 'keep' }))
    expect(verdict).toMatchObject({ outcome: 'UNCHANGED', changed: false, touched: false, marked: true })
    expect(dataOf(verdict.row)).toEqual(dataOf(held))
  })

  it('under latest-expiry takes effect only with a later expiry', () => {
    const year = (expiryYear: number) =>
      decided(one(held, { expiryMonth: 1, expiryYear, cardHolderName: 'B' }, { onConflict: 'latest-expiry' }))
    expect([year(2027).outcome, year(2028).outcome, year(2029).outcome]).toEqual(['UNCHANGED', 'UNCHANGED', 'UPDATED'])
    expect(year(2029).row).toMatchObject({ expiryYear: 2029, cardHolderName: 'B' })
    expect(decided(one(held, { cardHolderName: 'B' }, { onConflict: 'latest-expiry' })).outcome).toBe('UNCHANGED')
  })

  it('by another record of the batch is DUPLICATE, whatever it writes', () => {
    for (const onConflict of ['update', 'keep', 'reject', 'latest-expiry'] as const) {
      const first = decided(one(undefined, { expiryMonth: 1, expiryYear: 2028 }, { onConflict }, 5)).row
      const later = decided(one(first, { expiryMonth: 1, expiryYear: 2029 }, { onConflict }, 6))
      const earlier = decided(one(first, { expiryMonth: 1, expiryYear: 2029 }, { onConflict }, 4))
      const takesLater = onConflict === 'update' || onConflict === 'latest-expiry'
      expect([later.outcome, earlier.outcome]).toEqual(['DUPLICATE', 'DUPLICATE'])
      expect(later.row.expiryYear).toBe(takesLater ? 2029 : 2028)
      expect(earlier.row.expiryYear).toBe(onConflict === 'update' ? 2028 : 2029)
    }
  })

  it('under keep and reject an earlier line replaces all that a later one gave', () => {
    const first = stored(
      decided(one(undefined, { cardHolderName: 'B', cardSequence: '1' }, { onConflict: 'keep' }, 5)).row,
    )
    const { row } = decided(one(first, { cardHolderName: 'A', tokenType: 'ANALYTICS' }, { onConflict: 'keep' }, 4))
    expect(row).toMatchObject({
      cardHolderName: 'A',
      cardSequence: null,
      tokenType: 'ANALYTICS',
      sealed: null,
      version: 2,
    })
    expect(row.tokenId).toBe(first.tokenId)
  })

  it('by another batch is an ordinary row', () => {
    const other = rowOf({ cardHolderName: 'A' }, { mark: { batchNo: 6, created: true, line: 1, lines: null } })
    expect(decided(one(other, { cardHolderName: 'B' }))).toMatchObject({
      outcome: 'UPDATED',
      row: { mark: { batchNo: 7, created: false } },
    })
  })
})
