import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OnExpired } from '../../src/token/batch-order.ts'
import { create, type Given, lifecycle, update } from '../../src/token/decide.ts'
import { isLater } from '../../src/token/newest.ts'
import type { Giver, TokenRow } from '../../src/token/token.ts'
import { undo } from '../../src/token/undo.ts'
import { given } from './batch/given.ts'
import { batchLine, context, DAY_MS, decided, facts, NOW, printsOf, rowOf, stored } from './samples.ts'

interface Line {
  batchNo: number
  giver: Giver
  given: Given
}

/** Applies lines in the given order, each to the row as it was saved. */
function apply(lines: readonly Line[], onExpired: OnExpired, row: TokenRow | undefined) {
  const outcomes: string[] = []
  for (const [index, { batchNo, giver, given: data }] of lines.entries()) {
    const batch = batchLine(giver[2], { batchNo, onConflict: 'newest', onExpired })
    const at = context({ batch, giver, receiptId: `receipt-${index}`, now: NOW + DAY_MS + index })
    const verdict = create(row, data, facts({ brand: data.cardBrand ?? 'VISA' }), at)
    if ('refused' in verdict) {
      outcomes.push('refused')
      continue
    }
    outcomes.push(verdict.outcome)
    if (!verdict.changed && !verdict.marked) continue
    expect(verdict.row.version).toBe((row?.version ?? 0) + 1)
    const { mark, givenAt } = JSON.parse(JSON.stringify(verdict.row)) as TokenRow
    row = stored({ ...verdict.row, mark, givenAt })
  }
  return { outcomes, row }
}

function dataOf(row: TokenRow | undefined) {
  if (!row) return undefined
  const { createdAt: _c, updatedAt: _u, version: _v, lastReceipt: _l, mark: _m, ...data } = row
  return data
}

/** Times before, at and after that of the stored row; inputs of the same time. */
const giver = fc.tuple(
  fc.constantFrom(NOW - 2, NOW - 1, NOW, NOW + 1),
  fc.constantFrom('0a', 'ff'),
  fc.integer({ min: 1, max: 4 }),
)
const lines = fc.uniqueArray(
  fc.record({ giver, given }).map(line => ({ ...line, batchNo: line.giver[1] === '0a' ? 7 : 8 })),
  { selector: line => line.giver.join(), minLength: 1, maxLength: 6 },
)
const inAnyOrder = lines.chain(all =>
  fc.shuffledSubarray(all, { minLength: all.length }).map(shuffled => ({ all, shuffled })),
)
/** No row, and rows that no such batch has touched. */
const before = fc.option(
  fc
    .tuple(
      given,
      fc.constantFrom<Partial<TokenRow>>(
        {},
        { mark: { batchNo: 6, created: true, line: 9, lines: null } },
        { status: 'SUSPENDED', suspendedReason: 'EXPIRED' },
        { status: 'SUSPENDED', suspendedReason: 'CARD_EXPIRED' },
        { status: 'SUSPENDED', suspendedReason: 'REQUEST' },
      ),
    )
    .map(([data, over]) => rowOf(data, over)),
  { nil: undefined },
)

const line = (time: number, data: Given, input = 'aa'): Line => ({ batchNo: 7, giver: [time, input, 1], given: data })
const firstRow = (time: number, data: Given) => {
  const { row } = apply([line(time, data)], 'import', undefined)
  if (!row) throw new Error('the first line makes a row')
  return row
}

describe('of two givers', () => {
  it('exactly one is later, unless they are the same', () => {
    fc.assert(
      fc.property(giver, giver, (one, other) => {
        const isSame = one.join() === other.join()
        expect(Number(isLater(one, other)) + Number(isLater(other, one))).toBe(isSame ? 0 : 1)
      }),
    )
  })

  it('the time counts first, then the input, then the line', () => {
    expect(isLater([2, '', 0], [1, 'ff', 9])).toBe(true)
    expect(isLater([1, 'b', 0], [1, 'a', 9])).toBe(true)
    expect(isLater([1, 'a', 2], [1, 'a', 1])).toBe(true)
    expect(isLater([0, '', 0], undefined)).toBe(true)
  })
})

describe('records of one card with source times', () => {
  it.each(['import', 'suspend', 'reject'] as const)('end the same in any order, under %s', onExpired => {
    fc.assert(
      fc.property(inAnyOrder, before, ({ all, shuffled }, row) => {
        expect(dataOf(apply(shuffled, onExpired, row).row)).toEqual(dataOf(apply(all, onExpired, row).row))
      }),
      { numRuns: 600 },
    )
  })

  it.each(['import', 'suspend'] as const)('end the same around suspensions and activations, under %s', onExpired => {
    const events = fc.array(fc.constantFrom('SUSPEND' as const, 'ACTIVATE' as const), { minLength: 1, maxLength: 2 })
    fc.assert(
      fc.property(inAnyOrder, events, fc.nat(6), fc.nat(6), ({ all, shuffled }, asked, before, beforeOther) => {
        // The events are later than all lines of the first part, and earlier than those of the second.
        const at = NOW
        const play = (order: readonly Line[], place: number) => {
          const early = order.filter(({ giver: [time] }) => time < at)
          const [first = [], second = []] = [early.slice(0, 1 + place), early.slice(1 + place)]
          let row = apply(first, onExpired, undefined).row
          for (const [index, event] of asked.entries()) {
            if (!row) return undefined
            const verdict = decided(lifecycle(row, event, context({ giver: [at, '', index] }), 'body.id'))
            if (verdict.changed || verdict.marked) row = stored(verdict.row)
          }
          const late = order.filter(({ giver: [time] }) => time >= at)
          return dataOf(apply([...second, ...late], onExpired, row).row)
        }
        expect(play(shuffled, before)).toEqual(play(all, beforeOther))
      }),
      { numRuns: 600 },
    )
  })

  it('change nothing when they come again', () => {
    fc.assert(
      fc.property(lines, before, (all, row) => {
        const once = apply(all, 'suspend', row && Object.freeze(row)).row
        expect(dataOf(apply(all, 'suspend', once).row)).toEqual(dataOf(once))
      }),
    )
  })

  it('leave each field as the latest line gives it that gives the field', () => {
    fc.assert(
      fc.property(lines, all => {
        const named = all.filter(({ given: { cardHolderName } }) => cardHolderName !== undefined)
        const latest = named.reduce<Line | undefined>(
          (best, one) => (best && !isLater(one.giver, best.giver) ? best : one),
          undefined,
        )
        const { row, outcomes } = apply(all, 'import', undefined)
        if (!outcomes.includes('refused')) expect(row?.cardHolderName).toBe(latest?.given.cardHolderName ?? null)
      }),
    )
  })

  it('are UNCHANGED if everything they give was given later, and DUPLICATE within their batch', () => {
    const row = firstRow(NOW, { cardHolderName: 'NEW' })
    expect(apply([{ ...line(NOW - 1, { cardHolderName: 'OLD' }), batchNo: 9 }], 'import', row).outcomes).toEqual([
      'UNCHANGED',
    ])
    expect(apply([line(NOW - 1, { cardHolderName: 'OLD' }, 'bb')], 'import', row).row?.cardHolderName).toBe('NEW')
    const again = { ...line(NOW - 1, { cardHolderName: 'OLD' }), giver: [NOW - 1, 'aa', 2] as const }
    expect(apply([again], 'import', row).outcomes).toEqual(['DUPLICATE'])
  })

  it('give a field that nobody gave, however old they are', () => {
    const row = firstRow(NOW, { cardHolderName: 'NEW' })
    const { row: next, outcomes } = apply([{ ...line(1, { cardSequence: '2' }), batchNo: 9 }], 'import', row)
    expect(outcomes).toEqual(['UPDATED'])
    expect(next).toMatchObject({ cardSequence: '2', cardHolderName: 'NEW', givenAt: { sequence: [1, 'aa', 1] } })
  })

  it('count what a row holds without givers as given when the row was changed', () => {
    const row = rowOf({ cardHolderName: 'STORED', expiryMonth: 1, expiryYear: 2030 })
    expect(row.givenAt).toBeNull()
    const older = apply([line(NOW - 1, { cardHolderName: 'OLD' })], 'import', row).row
    expect(older).toMatchObject({ cardHolderName: 'STORED', givenAt: null })
    const newer = apply([line(NOW + 1, { cardHolderName: 'NEW' })], 'import', row).row
    expect(newer?.givenAt).toMatchObject({ name: [NOW + 1, 'aa', 1], expiry: [NOW, '', 0], status: [NOW, '', 0] })
    // The row was changed meanwhile, but the expiry date is as old as before.
    const next = apply([line(NOW + 1, { expiryMonth: 2, expiryYear: 2031 })], 'import', newer).row
    expect(next?.expiryYear).toBe(2031)
  })
})

describe('a single job on a row that keeps givers', () => {
  const job = (time: number, receiptId = 'job') => context({ giver: [time, '', 0], receiptId })
  const row = firstRow(NOW, { cardHolderName: 'FILE', expiryMonth: 1, expiryYear: 2030 })

  it('gives its fields at its time, so that no older line takes them back', () => {
    const put = stored(decided(create(row, { cardHolderName: 'PUT' }, facts(), job(NOW + 5))).row)
    expect(put.givenAt).toMatchObject({ name: [NOW + 5, '', 0], expiry: [NOW, 'aa', 1] })
    const data = { cardHolderName: 'OLD', expiryMonth: 2, expiryYear: 2031 }
    expect(apply([line(NOW + 4, data)], 'import', put).row).toMatchObject({ cardHolderName: 'PUT', expiryYear: 2031 })
  })

  it('is noted even if it gives what the row holds, and its reversal takes that back', () => {
    const patch = decided(update(row, { cardHolderName: 'FILE' }, job(NOW + 5)))
    expect(patch).toMatchObject({ outcome: 'UNCHANGED', changed: false, marked: true, touched: false })
    expect(patch.row).toMatchObject({ version: row.version + 1, lastReceipt: 'job', mark: null })
    expect(apply([line(NOW + 4, { cardHolderName: 'OLD' })], 'import', stored(patch.row)).row?.cardHolderName).toBe(
      'FILE',
    )
    const reversal = { outcome: 'UNCHANGED', receiptId: 'job', reversalId: 'r', now: NOW, isOwned: false }
    expect(undo(patch.row, row, reversal)?.givenAt).toEqual(row.givenAt)
  })

  it('gives another number and the brand with it, at its time', () => {
    const branded = firstRow(NOW, { cardBrand: 'CB' })
    const other = facts({ fingerprints: printsOf(2), bin: '51051051', lastFour: '5100', brand: 'MASTERCARD' })
    const linked = decided(update(branded, { card: other }, job(NOW + 5))).row
    const own = [NOW + 5, '', 0]
    expect(linked.givenAt).toEqual({ number: own, expiry: own, sequence: own, start: own })
    expect(linked).toMatchObject({ cardBrand: null, brand: 'MASTERCARD' })
  })

  it('gives another number without a date, so that no older line gives it the former card’s', () => {
    const other = facts({ fingerprints: printsOf(2) })
    const linked = stored(decided(update(row, { card: other }, job(NOW + 5))).row)
    expect(linked).toMatchObject({ expiryMonth: null, expiryYear: null, cardHolderName: 'FILE' })
    const older = apply([line(NOW + 4, { expiryMonth: 2, expiryYear: 2031 })], 'import', linked)
    expect(older.row).toMatchObject({ expiryYear: null })
    expect(apply([line(NOW + 6, { expiryMonth: 2, expiryYear: 2031 })], 'import', linked).row?.expiryYear).toBe(2031)
  })

  it('that suspends or activates decides before an older line’s expiry date', () => {
    const suspended = decided(lifecycle(row, 'SUSPEND', job(NOW + 5), 'body.id')).row
    const active = decided(lifecycle(suspended, 'ACTIVATE', job(NOW + 6), 'body.id')).row
    const expired = { expiryMonth: 1, expiryYear: 2026 }
    expect(apply([line(NOW + 3, expired)], 'suspend', active).row).toMatchObject({ status: 'ACTIVE', expiryYear: 2026 })
    expect(apply([line(NOW + 7, expired)], 'suspend', active).row?.suspendedReason).toBe('CARD_EXPIRED')
  })

  it('that suspends a token which a file has suspended counts before every file', () => {
    const expired = apply([line(NOW, { expiryMonth: 1, expiryYear: 2026 })], 'suspend', undefined).row
    if (!expired) throw new Error('the line makes a row')
    const verdict = decided(lifecycle(expired, 'SUSPEND', job(NOW + 5), 'body.id'))
    expect(verdict).toMatchObject({ outcome: 'UPDATED', changed: true })
    expect(verdict.row).toMatchObject({ status: 'SUSPENDED', suspendedReason: 'REQUEST' })
    for (const time of [NOW + 3, NOW + 7]) {
      const { row: next } = apply([line(time, { expiryMonth: 2, expiryYear: 2031 })], 'suspend', stored(verdict.row))
      expect(next).toMatchObject({ status: 'SUSPENDED', suspendedReason: 'REQUEST', expiryYear: 2031 })
    }
  })

  it('that activates an active token is noted, and the scheduler’s expiry of a date that was put off is not', () => {
    const active = decided(lifecycle(row, 'ACTIVATE', job(NOW + 5), 'body.id'))
    expect(active).toMatchObject({ outcome: 'UNCHANGED', changed: false, marked: true, touched: false })
    const expired = { expiryMonth: 1, expiryYear: 2026 }
    expect(apply([line(NOW + 3, expired)], 'suspend', stored(active.row)).row?.status).toBe('ACTIVE')
    expect(decided(lifecycle(row, 'EXPIRE', job(NOW + 5), 'body.id'))).toMatchObject({ marked: false, touched: true })
  })

  it('leaves a row without givers without them, unless it gives another number', () => {
    const plain = rowOf({ cardHolderName: 'PLAIN' })
    const other = facts({ fingerprints: printsOf(2) })
    const own = [NOW + 5, '', 0]
    expect(decided(update(plain, { card: other }, job(NOW + 5))).row.givenAt).toEqual({
      name: [NOW, '', 0],
      status: [NOW, '', 0],
      number: own,
      expiry: own,
      sequence: own,
      start: own,
    })
    expect(decided(create(plain, { cardHolderName: 'PUT' }, facts(), job(NOW + 5))).row.givenAt).toBeNull()
    expect(decided(update(plain, { cardHolderName: 'PLAIN' }, job(NOW + 5))).touched).toBe(true)
  })

  it('that deletes erases them', () => {
    expect(decided(lifecycle(row, 'DELETE', job(NOW + 5), 'body.id')).row.givenAt).toBeNull()
  })
})

describe('a line of a batch without source times', () => {
  it('gives its fields when the batch was accepted', () => {
    const row = firstRow(NOW, { cardHolderName: 'FILE', cardSequence: '1' })
    const batch = batchLine(3, { batchNo: 9, onConflict: 'update' })
    const at = context({ batch, giver: [NOW + 5, '', 3] })
    const next = decided(create(row, { cardHolderName: 'LATER' }, facts(), at)).row
    expect(next.givenAt).toMatchObject({ name: [NOW + 5, '', 3], sequence: [NOW, 'aa', 1] })
    expect(apply([line(NOW + 4, { cardHolderName: 'OLD' })], 'import', stored(next)).row?.cardHolderName).toBe('LATER')
  })
})

describe('a token that gets a card by a line with a source time', () => {
  const past = { expiryMonth: 1, expiryYear: 2026 }
  const valid = { expiryMonth: 1, expiryYear: 2030 }
  const relinked = (row: TokenRow, time: number, data: Given) => {
    const card = facts({ fingerprints: printsOf(2) })
    const newest = batchLine(1, { onExpired: 'suspend' })
    return decided(update(row, { ...data, card }, { ...context({ giver: [time, 'aa', 1] }), newest })).row
  }

  it('is suspended or active as the expiry date that stands says', () => {
    const suspended = apply([line(NOW, past)], 'suspend', undefined).row
    if (!suspended) throw new Error('the line makes a row')
    expect(relinked(suspended, NOW + 1, valid)).toMatchObject({
      status: 'ACTIVE',
      givenAt: { status: [NOW + 1, 'aa', 1] },
    })
    expect(relinked(firstRow(NOW, valid), NOW + 1, past).suspendedReason).toBe('CARD_EXPIRED')
    const byHand = decided(lifecycle(firstRow(NOW, valid), 'ACTIVATE', context({ giver: [NOW + 5, '', 0] }), 'body.id'))
    expect(relinked(stored(byHand.row), NOW + 1, past).status).toBe('ACTIVE')
  })

  it('keeps the fields that were given later', () => {
    const row = decided(
      create(firstRow(NOW, { cardHolderName: 'FILE', cardSequence: '1' }), { cardHolderName: 'PUT' }, facts(), {
        ...context({ giver: [NOW + 9, '', 0] }),
      }),
    ).row
    const card = facts({ fingerprints: printsOf(2) })
    const data = { cardHolderName: 'LINE', cardSequence: '2', cardBrand: 'CB', card }
    const next = decided(update(row, data, { ...context({ giver: [NOW + 5, 'aa', 1] }), newest: batchLine(1) })).row
    expect(next).toMatchObject({ cardHolderName: 'PUT', cardSequence: '2', cardBrand: 'CB' })
    expect(next.givenAt).toMatchObject({
      number: [NOW + 5, 'aa', 1],
      name: [NOW + 9, '', 0],
      brand: [NOW + 5, 'aa', 1],
    })
  })
})
