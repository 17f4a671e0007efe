import { describe, expect, it } from 'vitest'
import { lifecycle } from '../../src/token/decide.ts'
import { EVENTS, follow, type LifecycleEvent } from '../../src/token/lifecycle.ts'
import type { SuspendedReason, TokenStatus } from '../../src/token/token.ts'
import { context, decided, NOW, reasonOf, rowOf } from './samples.ts'

type State = 'ACTIVE' | 'DELETED' | `SUSPENDED ${SuspendedReason}`

const stateOf = (status: TokenStatus, reason: SuspendedReason | null) => (reason ? `${status} ${reason}` : status)

const LAW: Record<State, Record<LifecycleEvent, State | 'stays' | 'gone'>> = {
  ACTIVE: {
    SUSPEND: 'SUSPENDED REQUEST',
    ACTIVATE: 'stays',
    DELETE: 'DELETED',
    EXPIRE: 'SUSPENDED EXPIRED',
    RENEW: 'stays',
  },
  'SUSPENDED REQUEST': { SUSPEND: 'stays', ACTIVATE: 'ACTIVE', DELETE: 'DELETED', EXPIRE: 'stays', RENEW: 'stays' },
  'SUSPENDED EXPIRED': { SUSPEND: 'stays', ACTIVATE: 'ACTIVE', DELETE: 'DELETED', EXPIRE: 'stays', RENEW: 'ACTIVE' },
  'SUSPENDED CARD_EXPIRED': {
    SUSPEND: 'SUSPENDED REQUEST',
    ACTIVATE: 'ACTIVE',
    DELETE: 'DELETED',
    EXPIRE: 'stays',
    RENEW: 'stays',
  },
  DELETED: { SUSPEND: 'gone', ACTIVATE: 'gone', DELETE: 'gone', EXPIRE: 'gone', RENEW: 'gone' },
}

describe('the life of a token', () => {
  const cells = Object.entries(LAW).flatMap(([state, row]) =>
    EVENTS.map(event => ({ state: state as State, event, next: row[event] })),
  )
  it.each(cells)('$event on $state: $next', ({ state, event, next }) => {
    const [status, reason = null] = state.split(' ') as [TokenStatus, SuspendedReason?]
    const followed = follow({ status, suspendedReason: reason }, event)
    expect(typeof followed === 'string' ? followed : stateOf(followed.status, followed.suspendedReason)).toBe(next)
  })
})

describe('a lifecycle request', () => {
  const at = { now: NOW + 5, receiptId: 'receipt-2' }

  it.each(EVENTS)('%s on a deleted token is a 404 that names the id', event => {
    const gone = rowOf({}, { status: 'DELETED' })
    expect(lifecycle(gone, event, at, 'params.id')).toEqual({
      refused: true,
      reason: 'token_not_found',
      field: 'params.id',
    })
  })

  it('that changes nothing names its receipt and nothing else', () => {
    const row = rowOf()
    const verdict = decided(lifecycle(row, 'ACTIVATE', at, 'body.id'))
    expect(verdict).toMatchObject({ outcome: 'UNCHANGED', changed: false, touched: true, needsSeal: false })
    expect(verdict.row).toEqual({ ...row, lastReceipt: 'receipt-2' })
  })

  it('suspends, and counts the version up', () => {
    const row = rowOf({}, { mark: { batchNo: 7, created: true, line: 1, lines: null } })
    const verdict = decided(lifecycle(row, 'SUSPEND', at, 'body.id'))
    expect(verdict).toMatchObject({ outcome: 'UPDATED', changed: true, touched: false })
    expect(verdict.row).toEqual({
      ...row,
      status: 'SUSPENDED',
      suspendedReason: 'REQUEST',
      version: 2,
      updatedAt: at.now,
      lastReceipt: 'receipt-2',
      mark: null,
    })
    expect(row.status).toBe('ACTIVE')
  })

  it('deletes all that is known of the card, and keeps id, scope, status and dates', () => {
    const row = rowOf({
      expiryMonth: 4,
      expiryYear: 2029,
      cardHolderName: 'A. Holder',
      cardHolderEmail: 'a@example.org',
      cardSequence: '1',
      startMonth: 1,
      startYear: 2020,
      cardBrand: 'VISA',
      tokenType: 'REUSE_AND_ANALYTICS',
      tokenExpiryDate: '2030-01-01',
    })
    const { row: left, needsSeal } = decided(lifecycle(row, 'DELETE', at, 'body.id'))
    expect(needsSeal).toBe(false)
    const { tokenId, tokenScope, tokenType, createdAt, tokenExpiryDate } = row
    const kept = { tokenId, tokenScope, tokenType, createdAt, tokenExpiryDate, status: 'DELETED', version: 2 }
    const nothing = Object.fromEntries(Object.keys(row).map(key => [key, null]))
    expect(left).toEqual({
      ...nothing,
      ...kept,
      cards: [],
      link: undefined,
      updatedAt: at.now,
      lastReceipt: 'receipt-2',
    })
  })

  it('EXPIRE leaves a token alone whose date was put off meanwhile', () => {
    const expire = (tokenExpiryDate: string | null) =>
      decided(lifecycle(rowOf({}, { tokenExpiryDate }), 'EXPIRE', at, 'body.id')).row.status
    expect([null, '2027-01-01', '2026-11-21', '2026-11-20'].map(expire)).toEqual([
      'ACTIVE',
      'ACTIVE',
      'ACTIVE',
      'SUSPENDED',
    ])
  })

  it('refuses nothing but what is gone', () => {
    expect(reasonOf(lifecycle(rowOf(), 'SUSPEND', context(), 'body.id'))).toBeUndefined()
  })
})
