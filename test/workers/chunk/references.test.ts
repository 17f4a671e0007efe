// A reference that looks like a card of its chunk is kept and told of no record, however the record ends.
import { describe, expect, it } from 'vitest'
import type { RecordOutcome } from '../../../src/job/chunk-outcomes.ts'
import { openPanLookalikes } from '../../../src/token/pan-lookalike.ts'
import { refuseCardLikeReferences } from '../../../workers/chunk/references.ts'

const cards = openPanLookalikes()
cards.add('4111111111111111')
const LIKE = '4111 1122 2222 1111'

const known = (outcome: RecordOutcome['outcome'], reference: string): RecordOutcome => ({
  line: 2,
  reference,
  outcome,
  reason: undefined,
  field: undefined,
  token: undefined,
})

describe('a reference that looks like a card of its chunk', () => {
  it.each(['CANCELLED', 'FAILED'] as const)('is left out of a record that is %s, which stays so', outcome => {
    const told = refuseCardLikeReferences({ known: [known(outcome, LIKE)], prepared: [] }, cards)
    expect(told.known).toEqual([{ ...known(outcome, LIKE), reference: undefined }])
  })

  it.each(['CANCELLED', 'FAILED', 'REJECTED'] as const)(
    'and one that does not stays with a record that is %s',
    outcome => {
      const told = refuseCardLikeReferences({ known: [known(outcome, 'order-17')], prepared: [] }, cards)
      expect(told.known).toEqual([known(outcome, 'order-17')])
    },
  )

  it('refuses a record that is still to be worked, and one that was rejected for something else', () => {
    const open = { line: 3, reference: LIKE }
    const told = refuseCardLikeReferences({ known: [known('REJECTED', LIKE)], prepared: [open] }, cards)
    expect(told.prepared).toEqual([])
    expect(told.known).toMatchObject([2, 3].map(line => ({ line, reference: undefined, reason: 'reference_pan' })))
  })
})
