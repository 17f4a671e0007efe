// The fast check of transactions: the schema accepts every transaction that passes it, and leaves it unchanged.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isPlain } from '../../../src/job/ledger/plain.ts'
import { TRANSACTION_TYPES, Transaction } from '../../../src/job/ledger/transaction.ts'
import { transactionOf } from '../../producers/ingest/sample.ts'
import { volume } from '../../support/volume.ts'

const ENTITY = '7d9f1c52-3f0e-4a7b-9c1d-2b8e6f4a5d30'
const sample = (index: number) => transactionOf(index, { entity: ENTITY })

const HOSTILE = [
  ...['', ' ', 'NULL', 'a\nb', 'a\0b', '\u2028', 'JOSÉ', '日本', '\ud83d', '😀', '①②③', 'x'.repeat(64), 'x'.repeat(65)],
  ...[
    'x'.repeat(128),
    'x'.repeat(129),
    '4111111111111111',
    '4111-1111 11111111',
    'DE 4111111234561111',
    '４１１１１１１１１１１１１１１１',
  ],
  ...['411111 12345 1111 and 20 more digits 12345', ENTITY, ENTITY.toUpperCase(), `${ENTITY}\n`, `{${ENTITY}}`],
  ...[
    '0',
    '-0',
    '-00',
    '1',
    '-1',
    '+1',
    '1.5',
    '1e3',
    ' 1',
    '9'.repeat(18),
    '9'.repeat(19),
    `-${'9'.repeat(18)}`,
    '１',
  ],
  ...['EUR', 'eur', 'XAU', 'XTS', 'EURO', 'BTC', 'ANG', 'constructor', '__proto__', 'toString'],
  ...['VISA', 'visa', 'CB_2', 'V'.repeat(33), '411111******1111', '41111111****1111', '41111111**1111', '411111**1111'],
  ...['2026-02-29', '2024-02-29', '2026-02-30', '1999-12-31', '2099-12-31', '2100-01-01', '2026-1-1', '2026-01-01\n'],
  ...['2026-02-29T00:00:00Z', '2024-02-29T23:59:59Z', '2026-01-01T24:00:00Z', '2026-01-01T00:00:60Z'],
  ...['2026-01-01T00:00:00.1Z', '2026-01-01T00:00:00.123456Z', '2026-01-01T00:00:00.1234567Z', '2026-01-01T00:00:00.Z'],
  ...['2026-01-01T00:00Z', '2026-01-01t00:00:00z', '2026-01-01T00:00:00+00:00', '1999-12-31T23:59:59Z'],
  ...['2000-01-01T00:00:00Z', '2099-12-31T23:59:59.999999Z', '2100-01-01T00:00:00Z', ...TRANSACTION_TYPES],
]
const value = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...HOSTILE) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 140 }) },
  { weight: 1, arbitrary: fc.anything() },
)
const name = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...Object.keys(sample(0))) },
  { weight: 1, arbitrary: fc.constantFrom('cvv', 'card', 'constructor', '__proto__', 'line') },
)
/** A valid line with some members changed or left out. */
const line = fc
  .tuple(fc.nat(1_000), fc.array(fc.tuple(name, fc.oneof(value, fc.constant(undefined))), { maxLength: 3 }))
  .map(([index, changes]) => {
    const members = new Map<string, unknown>([...Object.entries(sample(index)), ...changes])
    const text = [...members].flatMap(([key, given]) => {
      const written = JSON.stringify(given, (_, inner) => (typeof inner === 'bigint' ? String(inner) : inner))
      return written === undefined ? [] : `${JSON.stringify(key)}:${written}`
    })
    return JSON.parse(`{${text.join(',')}}`) as Record<string, unknown>
  })

describe('the fast check of a transaction', () => {
  it('takes nothing that the schema refuses or changes', () => {
    let plain = 0
    fc.assert(
      fc.property(line, given => {
        if (!isPlain(given)) return
        plain += 1
        expect(Transaction.parse(given)).toEqual(given)
      }),
      { numRuns: volume(20_000, 200_000) },
    )
    expect(plain).toBeGreaterThan(1_000)
  })

  it('leaves to the schema only good lines with a UUID in capitals or a text beyond ASCII', () => {
    fc.assert(
      fc.property(line, given => {
        const { success, data } = Transaction.safeParse(given)
        if (!success || isPlain(given)) return
        const isAscii = Object.values(given).every(value => /^[\0-\x7f]*$/.test(String(value)))
        if (isAscii) expect(data).not.toEqual(given)
      }),
      { numRuns: volume(5_000, 50_000) },
    )
  })

  it.each(['*(', '*[', '*(\\d+)+x', '(\\d+)+*x'])('takes the mask %s of a line for no pattern', masked_card => {
    const given = { ...sample(0), masked_card, bank_account: '1'.repeat(64) }
    const { error } = Transaction.safeParse(given)
    expect(error?.issues.map(({ path }) => path.join('.'))).toEqual(['masked_card'])
    expect(isPlain(given)).toBe(false)
  })

  it('takes the lines of an ordinary ledger', () => {
    for (let index = 0; index < 500; index += 1) expect(isPlain(sample(index))).toBe(true)
  })

  it('takes a line with the needed members alone, and none without one of them', () => {
    const { transaction_uid, entity_uid, type, currency, amount, fee, commission, created_at } = sample(0)
    const needed = { transaction_uid, entity_uid, type, currency, amount, fee, commission, created_at }
    expect(isPlain(needed)).toBe(true)
    for (const left of Object.keys(needed)) expect(isPlain({ ...needed, [left]: undefined })).toBe(false)
  })
})
