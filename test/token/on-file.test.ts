// The rules of source references: the outcome of a claim, what it changes, and what a reversal restores.
import { describe, expect, it } from 'vitest'
import { judgeClaim, ownerKey, type SourceReference, takeBack, toldAgain } from '../../src/token/on-file.ts'

const OWNER = { tokenScope: 's', provider: 'p', providerAccount: 'a', customerId: 'c', cardId: 'k' }
const NOW = 1_000

function reference(over: Partial<SourceReference> = {}): SourceReference {
  return {
    ...OWNER,
    tokenId: 't1',
    onFile: {},
    version: 1,
    createdAt: 0,
    updatedAt: 0,
    lastReceipt: 'r0',
    mark: null,
    givenAt: null,
    before: null,
    ...over,
  }
}

const judge = (stored: SourceReference | undefined, onFile = {}, at: Partial<Parameters<typeof judgeClaim>[2]> = {}) =>
  judgeClaim(stored, { owner: OWNER, onFile }, { tokenId: 't1', receiptId: 'r1', now: NOW, mark: undefined, ...at })

describe('a claim', () => {
  it('adds ids of transactions to those that are known, and replaces whatever else is given', () => {
    const stored = reference({
      onFile: { network_transaction_ids: ['A'], network_transaction_id: 'A', agreement: 'RECURRING', is_default: true },
    })
    const { outcome, row } = judge(stored, { network_transaction_id: 'B', is_default: false })
    expect(outcome).toBe('CHANGED')
    expect(row?.onFile).toEqual({
      network_transaction_ids: ['A', 'B'],
      network_transaction_id: 'B',
      agreement: 'RECURRING',
      is_default: false,
    })
  })

  it('that lists known ids again leaves the one in use', () => {
    const stored = reference({ onFile: { network_transaction_ids: ['A', 'B'], network_transaction_id: 'B' } })
    expect(judge(stored, { network_transaction_ids: ['A'] }).outcome).toBe('UNCHANGED')
    expect(judge(stored, { network_transaction_ids: ['older', 'A'] }).row?.onFile).toMatchObject({
      network_transaction_id: 'B',
    })
    expect(judge(stored, { network_transaction_ids: ['A', 'C'] }).row?.onFile).toMatchObject({
      network_transaction_id: 'C',
    })
    expect(judge(stored, { network_transaction_ids: ['A'], network_transaction_id: 'A' }).row?.onFile).toMatchObject({
      network_transaction_id: 'A',
    })
  })

  it('keeps fifty ids of transactions: the first, the one in use and the latest', () => {
    const ids = Array.from({ length: 50 }, (_, index) => `n${index}`)
    const stored = reference({ onFile: { network_transaction_ids: ids, network_transaction_id: 'n49' } })
    const { row } = judge(stored, { network_transaction_id: 'last' })
    expect(row?.onFile.network_transaction_ids).toEqual(['n0', ...ids.slice(2), 'last'])
    const fresh = ids.map(id => `fresh-${id}`)
    const given = { network_transaction_ids: fresh, network_transaction_id: 'n7' }
    const { onFile } = judge(stored, given).row ?? {}
    expect(onFile).toMatchObject({
      network_transaction_ids: ['n0', 'n7', ...fresh.slice(2)],
      network_transaction_id: 'n7',
    })
  })

  it('that confirms what stands names itself in the row and leaves its time', () => {
    const stored = reference({ onFile: { is_default: true } })
    const { outcome, row } = judge(stored, { is_default: true })
    expect(outcome).toBe('UNCHANGED')
    expect(row).toMatchObject({ version: 2, lastReceipt: 'r1', updatedAt: 0 })
  })

  it('of a token that got the card for it is a change, though nothing else is new', () => {
    expect(judge(reference(), {}, { relinked: true }).outcome).toBe('CHANGED')
  })

  it('of an earlier line is older only within its own batch', () => {
    const stored = reference({ mark: { batchNo: 1, line: 5 } })
    expect(judge(stored, {}, { mark: { batchNo: 1, line: 4 }, tokenId: 't2' })).toEqual({
      outcome: 'OLDER',
      row: undefined,
      previousToken: undefined,
    })
    expect(judge(stored, {}, { mark: { batchNo: 2, line: 4 }, tokenId: 't2' })).toMatchObject({
      outcome: 'MOVED',
      previousToken: 't1',
    })
  })
})

describe('a reversal', () => {
  const back = { reversalId: 'x', now: NOW + 1, since: NOW - 1, isLive: () => true }
  const written = (stored: SourceReference | undefined, onFile = {}, tokenId = 't1') => {
    const { row } = judge(stored, onFile, { tokenId })
    if (!row) throw new Error('a single job writes its reference')
    return row
  }

  it('removes what was added, and tells nothing of it twice', () => {
    const row = written(undefined)
    expect(toldAgain(row)).toEqual({ outcome: 'ADDED', previousToken: undefined })
    expect(takeBack(row, back)).toBe('removed')
  })

  it('puts back what was changed or moved, once', () => {
    const row = written(reference({ mark: { batchNo: 3, line: 7 } }), { is_default: true }, 't2')
    expect(toldAgain(row)).toEqual({ outcome: 'MOVED', previousToken: 't1' })
    const restored = takeBack(row, back)
    expect(restored).toMatchObject({
      tokenId: 't1',
      onFile: {},
      mark: { batchNo: 3, line: 7 },
      lastReceipt: 'x',
      version: 3,
      before: null,
    })
    if (typeof restored !== 'object') throw new Error('it is a row')
    expect(takeBack(restored, back)).toBeUndefined()
    expect(toldAgain(restored)).toBeUndefined()
  })

  it('leaves what was written too long ago as it is', () => {
    const row = written(reference(), { is_default: true }, 't2')
    expect(takeBack(row, { ...back, since: NOW })).toBeUndefined()
    expect(takeBack(row, { ...back, since: NOW, isLive: () => false })).toBeUndefined()
  })

  it('leaves no reference to a token that is gone', () => {
    const row = written(reference(), {}, 't2')
    expect(takeBack(row, { ...back, isLive: () => false })).toBe('removed')
  })
})

it('two owners never have one key', () => {
  const one = { ...OWNER, customerId: 'a","b', cardId: 'c' }
  const other = { ...OWNER, customerId: 'a', cardId: 'b","c' }
  expect(ownerKey(one)).not.toBe(ownerKey(other))
})
