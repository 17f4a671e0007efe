// Chunks of creates of every kind: plain records, records that need a decision, and records that are refused. Chunks of
// a batch come to the same cards and owners, beside other chunks, more than once, and in cancelled batches.
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { type SealedCard, sealedCard } from './sealed-cards.ts'

export const PANS = 5
const INPUT = 'ab'.repeat(32)

export interface Given {
  pan: number | 'luhn' | 'short' | 'amex' | 'number'
  month: string | number | undefined
  year: string | number | undefined
  name: string | number | null | undefined
  reference: string | undefined
  /** Further members of the card. */
  inCard: Record<string, unknown>
  more: Record<string, unknown>
  /** Its owner's number, and what is said beside. */
  onFile: { owner: number; said: Record<string, unknown> } | undefined
  /** The line is sent in this form instead. */
  broken: 'rejected' | 'cut' | 'bytes' | undefined
  /** The card is encrypted. */
  sealed: SealedCard | undefined
  /** The record makes its chunk fail, if the chunk is poisoned. */
  isPoison: boolean
}

/**
 * What befalls a chunk. `raced`: another chunk with the same cards is written right before it. `again`: it is sent once
 * more after its poison is gone.
 */
type Life = 'usual' | 'raced' | 'cancelled' | 'dry' | 'poisoned' | 'again'

export interface Sent {
  batch: number
  records: Given[]
  isReversed: boolean
  life: Life
}

export type Policy = Record<string, unknown> | undefined

/** Texts that show a card of the chunk (`#`, a form of plain.test.ts, the card's number, `#`), and some that only seem to. */
const SHOWING = [...'pldunwmz'].flatMap(form => [0, 1, 2, 3, 4].map(pan => `#${form}${pan}#`))

/** PostgreSQL takes no NUL and no lone surrogate, and would refuse the whole statement. */
const BAD_TEXTS = ['A\u0000B', '\u0000', 'A\u0001', 'A\u0085', 'A\u2028B', '\ud800', 'A\udc00B', '\ude00\ud83d']

const mostly = <T>(usual: fc.Arbitrary<T>, ...others: fc.Arbitrary<T>[]) =>
  fc.oneof({ weight: 8 * others.length, arbitrary: usual }, ...others.map(arbitrary => ({ weight: 1, arbitrary })))
const onFile = fc.record({
  owner: fc.nat(6),
  said: mostly<Record<string, unknown>>(
    fc.constantFrom<Record<string, unknown>>(
      {},
      { network_transaction_ids: ['MCC123456789', 'N2'] },
      { cardholder_name: 'ANNA', network_transaction_id: 'N3', agreement: 'RECURRING', is_default: true },
      { provider_account: 'acct_1' },
      { network_transaction_ids: ['123456789012345'], transaction_link_id: 'MCC9876543210' },
      { customer_id: '9f1c2b7e-3d4a-4f5b-8c6d-7e8f9a0b1c2d' },
      { billing_address: { line1: 'Street 1', country: 'DE' } },
    ),
    ...[
      { card_id: '' },
      { provider: 'a b' },
      { unknown: 1 },
      { network_transaction_ids: [] },
      { network_transaction_ids: ['1'.repeat(65)] },
      { network_transaction_ids: ['#p2#'] },
      { transaction_link_id: 'x#p3#' },
      { first_amount: 4_111_111_111_111_111 },
      { cardholder_name: '#p4#' },
      ...SHOWING.flatMap(text => [{ customer_id: text }, { network_transaction_ids: ['N1', text] }]),
      { first_amount: -1 },
      { first_date: '2026-02-30' },
      ...BAD_TEXTS.flatMap(text => [{ customer_id: text }, { cardholder_name: text }]),
    ].map(fc.constant),
  ),
})
const given: fc.Arbitrary<Given> = fc.record({
  pan: mostly<Given['pan']>(fc.nat(PANS - 1), ...(['luhn', 'short', 'amex', 'number'] as const).map(fc.constant)),
  month: mostly<Given['month']>(
    fc.integer({ min: 1, max: 12 }),
    ...['07', '7', '13', '', undefined, 0].map(fc.constant),
  ),
  year: mostly<Given['year']>(
    fc.constantFrom(2031, 2032),
    ...['31', '2031', 2020, '1899', 5, undefined, ''].map(fc.constant),
  ),
  name: mostly<Given['name']>(
    fc.constantFrom<string | undefined>(
      'ANNA MEYER',
      'JOSÉ ÜNAL',
      'Nguyễn Thị Hằng',
      '山田 太郎',
      'Anna 😀',
      undefined,
      '',
    ),
    ...[
      7,
      null,
      'A'.repeat(31),
      'A\nB',
      'HENRY 8',
      '①②',
      '#p0#',
      '#p1#',
      '#l1#',
      '#w2#',
      '\u007f',
      '日本',
      ...BAD_TEXTS,
    ].map(fc.constant),
  ),
  reference: mostly<string | undefined>(
    fc.constantFrom('cust-1', '', undefined, '9f1c2b7e-3d4a-4f5b-8c6d-7e8f9a0b1c2d', '注文-12', '1234567890123456'),
    ...[
      'a"b',
      'a\\b',
      'ü',
      'x'.repeat(129),
      'a\tb',
      ...SHOWING,
      'no #p3#',
      '9#p4#77',
      '#p0#-x',
      '１２３４５６７８９０１２',
      '123456789012',
      ...BAD_TEXTS,
    ].map(fc.constant),
  ),
  inCard: mostly<Record<string, unknown>>(
    fc.constant({}),
    ...[
      { sequenceNumber: '7' },
      { sequenceNumber: 12 },
      { sequenceNumber: '1234' },
      { startMonth: 1, startYear: 2020 },
      { startMonth: '01', startYear: '20', sequenceNumber: '001' },
      { startMonth: 13, startYear: 2020 },
      { expiryMonth: undefined, expiryYear: undefined },
    ].map(fc.constant),
  ),
  more: mostly<Record<string, unknown>>(
    fc.constant({}),
    ...[
      { token_type: 'REUSE' },
      { token_type: 'REUSE', token_expiry_date: '2040-01-01', card_brand: 'VISA' },
      { token_type: 'ANALYTICS' },
      { token_type: 'REUSE_AND_ANALYTICS' },
      { card_brand: 'CB' },
      { card_brand: 'AMEX' },
      { token_expiry_date: '2040-01-01' },
      { token_expiry_date: '2001-01-01' },
      { reuse_token_type: 'INTERNAL' },
      { reuse_token_type: 'NONE_SUCH' },
      { token_scope: randomUUID() },
      { source_time: '2026-01-01T00:00:00Z' },
      { source_time: '2025-06-01T00:00:00.5Z' },
      { source_time: '2099-01-01T00:00:00Z' },
      { source_time: 'yesterday' },
      { unknown: 1 },
      { card: null },
      { encrypted_card: 'x', public_key_alias: 'y' },
    ].map(fc.constant),
    fc.constant({ on_file: null }),
  ),
  onFile: fc.option(onFile, { nil: undefined }),
  broken: mostly<Given['broken']>(fc.constant(undefined), ...(['rejected', 'cut', 'bytes'] as const).map(fc.constant)),
  sealed: fc.option(sealedCard, { nil: undefined }),
  isPoison: fc.nat(5).map(one => one === 0),
})
const sent: fc.Arbitrary<Sent> = fc.record({
  batch: fc.nat(1),
  records: fc.array(given, { minLength: 1, maxLength: 12 }),
  isReversed: mostly(fc.constant(false), fc.constant(true)),
  life: fc.oneof(
    { weight: 6, arbitrary: fc.constant<Life>('usual') },
    ...(['raced', 'raced', 'cancelled', 'dry', 'poisoned', 'again'] as const).map(life => fc.constant<Life>(life)),
  ),
})
export const someChunks: fc.Arbitrary<Sent[]> = fc.array(sent, { minLength: 1, maxLength: 4 })
export const policy: fc.Arbitrary<Policy> = mostly<Policy>(
  fc.option(
    fc.record(
      {
        on_conflict: fc.constantFrom('update', 'keep', 'reject', 'latest-expiry'),
        on_expired: fc.constantFrom('import', 'suspend', 'reject'),
      },
      { requiredKeys: [] },
    ),
    { nil: undefined },
  ),
  fc.constant({ relink: true }),
  fc.constant({ relink: true, on_conflict: 'keep' }),
  fc.constant({ on_conflict: 'newest', input_sha256: INPUT, source_time: '2026-01-01T00:00:00Z' }),
)
