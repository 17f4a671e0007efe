import { describe, expect, it } from 'vitest'
import { FIELDS } from '../../src/three-ds/fields.ts'
import { likePattern, PARAMETERS_MAX, parseSearch, VALUE_LENGTH_MAX } from '../../src/three-ds/filter.ts'
import { isProblem } from '../../src/three-ds/problem.ts'
import { formatReuseToken } from '../../src/token/token.ts'
import { ENTITY } from './samples.ts'

/** A query text as a caller writes it. */
const parse = (query: string) => parseSearch(new URLSearchParams(query))

function wrong(query: string): Record<string, string> {
  const found = parse(query)
  return isProblem(found) ? Object.fromEntries(found.details.map(({ field, reason }) => [field, reason])) : {}
}

function conditions(query: string) {
  const found = parse(query)
  return isProblem(found) ? found : found.conditions
}

describe('a list', () => {
  it('without parameters is the newest 2,000', () => {
    expect(parse('')).toEqual({
      conditions: [],
      sort: [{ field: 'created_at', descending: true }],
      limit: 2_000,
      skip: 0,
    })
  })

  it.each([
    ['_limit=1', {}],
    ['_limit=10000', {}],
    ['_limit=0', { 'query._limit': 'field_range' }],
    ['_limit=10001', { 'query._limit': 'field_range' }],
    ['_limit=x', { 'query._limit': 'field_format' }],
    ['_limit=1&_limit=2', { 'query._limit': 'field_conflict' }],
    ['_skip=0', {}],
    ['_skip=-1', { 'query._skip': 'field_format' }],
    ['_skip=1000001', { 'query._skip': 'field_range' }],
    ['_sort=-authentication.eci_flag', {}],
    ['_sort=nothing', { 'query._sort': 'field_value' }],
    ['_sort=authentication.cavv', { 'query._sort': 'field_value' }],
    ['_sort=amount&_sort=-created_at', {}],
    ['_sort=amount&_sort=-amount', { 'query._sort': 'field_conflict' }],
    ['_sort=amount&_sort=', { 'query._sort': 'field_value' }],
    ['_sort=amount,-created_at', { 'query._sort': 'field_value' }],
    ['_page=1', { 'query._page': 'field_unknown' }],
  ])('%s', (query, expected) => {
    expect(wrong(query)).toEqual(expected)
  })
})

it('a sort that is repeated orders by each field in turn', () => {
  expect(parse('_sort=-currency_code&amount=1&_sort=amount&_sort=-_id')).toMatchObject({
    sort: [
      { field: 'currency_code', descending: true },
      { field: 'amount', descending: false },
      { field: '_id', descending: true },
    ],
  })
})

describe('a filter', () => {
  it('compares as its name’s last character says', () => {
    expect(conditions('amount=5&amount!=6&amount>=1&amount<=9')).toEqual([
      { field: 'amount', operator: '=', values: [5] },
      { field: 'amount', operator: '!=', values: [6] },
      { field: 'amount', operator: '>=', values: [1] },
      { field: 'amount', operator: '<=', values: [9] },
    ])
    expect(conditions('authentication.order_id~=a*b')).toEqual([
      { field: 'authentication.order_id', operator: '~=', values: ['a*b'] },
    ])
    expect(conditions('created_at%3E=2026-01-02T03:04:05.678Z')).toEqual([
      { field: 'created_at', operator: '>=', values: [Date.UTC(2026, 0, 2, 3, 4, 5, 678)] },
    ])
  })

  it('repeated holds all its values', () => {
    expect(conditions('currency_code=EUR&amount=1&currency_code=USD')).toEqual([
      { field: 'currency_code', operator: '=', values: ['EUR', 'USD'] },
      { field: 'amount', operator: '=', values: [1] },
    ])
  })

  it('takes a time whose plus was not escaped, a date, and a token for a card', () => {
    expect(conditions('created_at=2026-01-02T03:04:05+02:00')).toMatchObject([
      { values: [Date.UTC(2026, 0, 2, 1, 4, 5)] },
    ])
    expect(conditions('created_at=2026-01-02')).toMatchObject([{ values: [Date.UTC(2026, 0, 2)] }])
    expect(conditions(`card=${formatReuseToken(ENTITY)}`)).toMatchObject([{ values: [ENTITY] }])
    expect(conditions(`entity_id=${ENTITY.toUpperCase()}`)).toMatchObject([{ values: [ENTITY] }])
  })

  it.each([
    ['amount~=5', { 'query.amount~': 'not_applicable' }],
    ['currency_code>=EUR', { 'query.currency_code>': 'not_applicable' }],
    ['_id~=a', { 'query._id~': 'not_applicable' }],
    ['amount=1.5', { 'query.amount': 'field_format' }],
    ['created_at>=today', { 'query.created_at>': 'field_format' }],
    ['_id=x', { 'query._id': 'field_format' }],
    ['card=4000000000001000', { 'query.card': 'field_format' }],
    ['pan=4000000000001000', { 'query.pan': 'field_unknown' }],
    ['4000000000001000=x', { 'query.(unnamed)': 'field_unknown' }],
    ['authentication.cavv=x', { 'query.authentication.cavv': 'field_unknown' }],
    ['authentication.payload=x', { 'query.authentication.payload': 'field_unknown' }],
    ['sealed=x', { 'query.sealed': 'field_unknown' }],
    ['currency_code=%00', { 'query.currency_code': 'field_characters' }],
    ['authentication.order_id~=*****', { 'query.authentication.order_id~': 'field_range' }],
    [
      `authentication.order_id=${'x'.repeat(VALUE_LENGTH_MAX + 1)}`,
      { 'query.authentication.order_id': 'field_length' },
    ],
    [
      Array(PARAMETERS_MAX + 1)
        .fill('amount=1')
        .join('&'),
      { query: 'field_length' },
    ],
    ["currency_code'--=x", { 'query.(unnamed)': 'field_unknown' }],
    ['__proto__=x&constructor=x', { 'query.__proto__': 'field_unknown', 'query.constructor': 'field_unknown' }],
  ])('%s', (query, expected) => {
    expect(wrong(query)).toEqual(expected)
  })

  it('is there for every field of a record in clear, and for no other', () => {
    const fields = [...FIELDS.keys()]
    for (const name of ['_id', 'amount', 'card', 'created_at', 'currency_code', 'entity_id', 'threeds_contract_id'])
      expect(fields).toContain(name)
    for (const name of ['pares_status', 'enrolled', 'eci_flag', 'challenge_cancel', 'network_score', 'acs_url'])
      expect(fields).toContain(`authentication.${name}`)
    for (const name of ['cavv', 'payload']) expect(fields).not.toContain(`authentication.${name}`)
  })

  it('of a pattern leaves nothing of LIKE to the caller but the star', () => {
    expect(likePattern('a_b%c\\d*e')).toBe('%a\\_b\\%c\\\\d%e%')
  })
})
