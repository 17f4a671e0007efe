// The packed outcomes of a chunk: unpacking returns what was packed, and older releases read the members that they
// know.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { pack, type RecordOutcome, unpack } from '../../src/job/chunk-outcomes.ts'
import { OUTCOMES } from '../../src/job/outcome.ts'
import { checkOf, expiryText, presentedText, readPresented } from '../../src/job/presented-card.ts'
import { REFERENCE_OUTCOMES } from '../../src/token/on-file.ts'

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const token = fc.uuid().map(tokenId => ({ tokenId }) as NonNullable<RecordOutcome['token']>)
const outcomes: fc.Arbitrary<RecordOutcome> = fc.record({
  line: fc.integer({ min: 1 }),
  reference: maybe(fc.string({ minLength: 1 })),
  outcome: fc.constantFrom(...OUTCOMES),
  reason: maybe(fc.constantFrom('pan_luhn', 'expired')),
  field: maybe(fc.constant('body.card')),
  token: maybe(token),
  claimed: maybe(fc.record({ outcome: fc.constantFrom(...REFERENCE_OUTCOMES), previous: maybe(token) })),
  presented: maybe(fc.constantFrom('203112Zk3q', 'Zk3q')),
})

it('gives back what was packed, whichever members a record has', () => {
  fc.assert(
    fc.property(fc.array(outcomes), records => {
      const wanted = records.map(({ token, claimed, reason, field, ...record }) => ({
        ...record,
        reason,
        // A field is kept only beside a reason or the members after it.
        field: reason !== undefined || claimed || record.presented !== undefined ? field : undefined,
        tokenId: token?.tokenId,
        claimed: claimed && { outcome: claimed.outcome, previous: claimed.previous?.tokenId },
      }))
      expect(unpack(pack(records))).toEqual(wanted)
    }),
  )
})

/** Reads a record as release 0.3 does. */
function readAsBefore([line, outcome, tokenId, reference, reason, field]: unknown[]) {
  return {
    line,
    outcome: OUTCOMES[outcome as number],
    tokenId,
    reference: reference || undefined,
    reason: reason || undefined,
    field: field || undefined,
  }
}

it('is read by an older release as far as that knows it', () => {
  const record = { line: 7, outcome: 'CREATED', reason: undefined, field: undefined } as const
  const given = { ...record, reference: 'r', token: { tokenId: 'id' } as RecordOutcome['token'] }
  const [plain, presented] = JSON.parse(pack([given, { ...given, presented: '203112Zk3q' }])) as unknown[][]
  expect(readAsBefore(presented ?? [])).toEqual(readAsBefore(plain ?? []))
  // The SQL of the batch report reads the reason from its place and treats only null as none.
  expect(presented?.[4]).toBe(null)
})

it('keeps of a card its date and too little of its fingerprint to know it by', () => {
  const fingerprint = '00112233-4455-6677-8899-aabbccddeeff'
  const first = { kept: [fingerprint], versions: [1] }
  const text = presentedText({ expiryMonth: 3, expiryYear: 2031 }, first)
  expect(readPresented(text)).toEqual({ expiry: '203103', check: checkOf(fingerprint), keyVersion: 1 })
  expect(text).toHaveLength(10)
  expect(readPresented(presentedText({}, first)).expiry).toBe('')
  expect(expiryText(null, null)).toBe('')
  const later = presentedText(
    { expiryMonth: 3, expiryYear: 2031 },
    { kept: [fingerprint, 'other'], versions: [12, 13] },
  )
  expect(readPresented(later)).toEqual({ expiry: '203103', check: checkOf(fingerprint), keyVersion: 12 })
})
