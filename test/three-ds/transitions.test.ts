import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/secret.ts'
import type { ARes } from '../../src/three-ds/messages.ts'
import { MEANINGS } from '../../src/three-ds/outcome.ts'
import type { Authentication } from '../../src/three-ds/record.ts'
import { type Settled, settleAnswer, settleExpiry, settleFailure, settleResult } from '../../src/three-ds/settle.ts'
import { EVENTS, type Event, follow, isFinal, STATES } from '../../src/three-ds/transition.ts'
import { CAVV, makeRecord } from './samples.ts'

describe('the table of transitions', () => {
  it('has a cell for every state and event, and leaves no final state', () => {
    for (const state of STATES)
      for (const event of EVENTS) {
        const { next } = follow(state, event)
        if (isFinal(state)) expect(next).toBeUndefined()
      }
  })

  it('takes no result before a challenge was asked for', () => {
    for (const end of ['Y', 'A', 'N', 'U', 'R'] as const)
      expect(follow('OPEN', `result-${end}`)).toEqual({ unmoved: 'early' })
  })

  it('ends a challenge by its result or by the clock, and by nothing else', () => {
    const moving = EVENTS.filter(event => follow('C', event).next !== undefined)
    expect(moving).toEqual(['result-Y', 'result-A', 'result-N', 'result-U', 'result-R', 'expired'])
    expect(follow('C', 'expired')).toEqual({ next: 'U' })
  })
})

const PAN = new Secret('4000000000001000')
const START = 1_700_000_000_000

function aresOf(record: Authentication, transStatus: ARes['transStatus']): ARes {
  return {
    messageType: 'ARes',
    messageVersion: '2.2.0',
    threeDSServerTransID: record.transactionId,
    dsTransID: randomUUID(),
    acsTransID: randomUUID(),
    transStatus,
    // One that is sent with any outcome must be dropped where it proves nothing.
    authenticationValue: CAVV,
    acsURL: 'https://acs.example/challenge',
  }
}

function happen(record: Authentication, event: Event, now: number): Settled {
  const [kind, status] = event.split('-') as [string, 'Y']
  if (kind === 'answer') return settleAnswer(record, aresOf(record, status), { now, windowSize: '05', pan: PAN })
  if (kind === 'result') return settleResult(record, { outcome: status, cavv: CAVV }, now)
  if (kind === 'failed') return settleFailure(record, { error: 511 }, now)
  return settleExpiry(record, Math.max(now, record.pendingUntil))
}

describe('an authentication', () => {
  it('ends once, whatever comes doubled, late or out of order, and its row always says what its state means', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...EVENTS), { minLength: 1, maxLength: 20 }),
        fc.constantFrom('VISA', 'MASTERCARD' as const),
        (events, network) => {
          let record = makeRecord({ network: network as 'VISA', pendingUntil: START + 600_000 })
          let ended: Authentication | undefined
          let now = START
          for (const event of events) {
            now += 1_000
            const before = record
            const settled = happen(record, event, now)
            if (settled.unmoved === undefined) {
              expect(ended).toBeUndefined()
              record = settled.record
              expect(record.version).toBe(before.version + 1)
            }
            if (ended) expect(record).toBe(ended)
            if (isFinal(record.state)) ended ??= record
            expectSound(record)
          }
        },
      ),
      { numRuns: 500 },
    )
  })

  it('told twice the same says so, and told otherwise says that it comes late', () => {
    const open = makeRecord()
    const done = happen(open, 'answer-Y', START)
    expect(done.unmoved).toBeUndefined()
    if (!done.record) return
    expect(happen(done.record, 'answer-Y', START)).toEqual({ unmoved: 'same' })
    expect(happen(done.record, 'result-Y', START)).toEqual({ unmoved: 'same' })
    expect(happen(done.record, 'result-N', START)).toEqual({ unmoved: 'late' })
    expect(happen(done.record, 'answer-C', START)).toEqual({ unmoved: 'late' })
  })

  it('with an answer that can not be used ends as U and says why', () => {
    const record = makeRecord()
    const used = (ares: Partial<ARes>) =>
      settleAnswer(record, { ...aresOf(record, 'Y'), ...ares }, { now: START, windowSize: '05', pan: PAN }).record
    for (const wrong of [
      { authenticationValue: undefined },
      { authenticationValue: 'short' },
      { transStatus: 'D' },
      { transStatus: 'C', acsURL: undefined },
      { threeDSServerTransID: randomUUID() },
      { cardholderInfo: 'Your card 4000 0000 0000 1000 is fine' },
      { acsURL: 'https://acs.example/4000000000001000' },
    ] as Partial<ARes>[]) {
      const found = used(wrong)
      expect(found, JSON.stringify(wrong)).toMatchObject({
        state: 'U',
        findings: { error_no: '511', eci_flag: '07', enrolled: 'U' },
      })
      expect(JSON.stringify(found?.findings)).not.toContain('4000')
    }
    expect(used({ transStatus: 'I' })).toMatchObject({ state: 'U', findings: { enrolled: 'Y', error_no: '0' } })
  })
})

/** The row's own constraints, and what the outcome means. */
function expectSound({ state, findings, secrets, network }: Authentication): void {
  const { cavv, payload } = secrets.reveal()
  expect(payload !== undefined).toBe(state === 'C')
  if (state === 'OPEN') {
    expect({ cavv, eci: findings.eci_flag }).toEqual({ cavv: undefined, eci: undefined })
    return
  }
  const meaning = MEANINGS[network][state]
  expect(cavv !== undefined).toBe(meaning.cavv)
  expect(findings.eci_flag).toBe(meaning.eci)
  if (state === 'Y' || state === 'A') expect(findings).toMatchObject({ enrolled: 'Y', signature_verification: 'Y' })
}
