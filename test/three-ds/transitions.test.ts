import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/secret.ts'
import { type Applied, applyAnswer, applyExpiry, applyFailure, applyResult } from '../../src/three-ds/apply-message.ts'
import { ARes, RReq } from '../../src/three-ds/messages.ts'
import { ECIS } from '../../src/three-ds/outcome.ts'
import type { Authentication } from '../../src/three-ds/record.ts'
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
      expect(follow('OPEN', `result-${end}`)).toEqual({ ignored: 'early' })
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
    authenticationValue: CAVV,
    acsURL: 'https://acs.example/challenge',
  }
}

function happen(record: Authentication, event: Event, now: number): Applied {
  const [kind, status] = event.split('-') as [string, 'Y']
  if (kind === 'answer') return applyAnswer(record, aresOf(record, status), { now, windowSize: '05', pan: PAN })
  if (kind === 'result') return applyResult(record, { outcome: status, cavv: CAVV }, now)
  if (kind === 'failed') return applyFailure(record, { error: 511 }, now)
  return applyExpiry(record, Math.max(now, record.pendingUntil))
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
            if (settled.ignored === undefined) {
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
    expect(done.ignored).toBeUndefined()
    if (!done.record) return
    expect(happen(done.record, 'answer-Y', START)).toEqual({ ignored: 'same' })
    expect(happen(done.record, 'result-Y', START)).toEqual({ ignored: 'same' })
    expect(happen(done.record, 'result-N', START)).toEqual({ ignored: 'late' })
    expect(happen(done.record, 'answer-C', START)).toEqual({ ignored: 'late' })
  })

  it('with an answer that can not be used ends as U and says why', () => {
    const record = makeRecord()
    const used = (ares: Partial<ARes>) =>
      applyAnswer(record, { ...aresOf(record, 'Y'), ...ares }, { now: START, windowSize: '05', pan: PAN }).record
    for (const wrong of [
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
  })
})

/** Mastercard's form of 21 bytes: 28 characters without padding. */
const SPA2 = `k${'A'.repeat(27)}`
const VALUES = [undefined, CAVV, SPA2, '', 'short', '!', 'ü'.repeat(40), 'f'.repeat(40), 'x'.repeat(4_000)]
const ends = { Y: 'Y', A: 'A', N: 'N', U: 'U', R: 'R', I: 'U' } as const
const STATUSES = Object.keys(ends) as (keyof typeof ends)[]

describe('an authentication value', () => {
  it('of whatever presence, length and alphabet decides no outcome, and is kept with each', () => {
    for (const transStatus of STATUSES)
      for (const value of VALUES) {
        const record = makeRecord({ network: 'MASTERCARD' })
        const found = settled(record, { transStatus, authenticationValue: value })
        expect(found, `${transStatus} ${value?.slice(0, 8)}`).toMatchObject({
          state: ends[transStatus],
          findings: { error_no: '0' },
        })
        expect(found.secrets.reveal().cavv).toBe(value || undefined)
      }
  })

  it('of a challenge’s result decides nothing either', () => {
    for (const transStatus of ['Y', 'A', 'N', 'U', 'R'] as const)
      for (const value of VALUES) {
        const record = makeRecord({ network: 'MASTERCARD', state: 'C' })
        const rreq = RReq.parse({ ...rreqOf(record), transStatus, authenticationValue: value })
        const result = { outcome: rreq.transStatus, cavv: rreq.authenticationValue }
        const found = applyResult(record, result, START).record
        expect(found?.state).toBe(transStatus)
        expect(found?.secrets.reveal().cavv).toBe(value || undefined)
      }
  })

  it('that is longer than any edition has it is left out, and that is all', () => {
    const found = settled(makeRecord(), { transStatus: 'Y', authenticationValue: 'x'.repeat(4_001) })
    expect(found).toMatchObject({ state: 'Y', findings: { eci_flag: '05' } })
    expect(found.secrets.reveal().cavv).toBeUndefined()
  })
})

describe('an ECI', () => {
  it.each(['04', '06', '07', 'N2', 'N0', '02', '99', 'zz'])('of %s is kept as the directory server sent it', eci => {
    for (const transStatus of STATUSES)
      for (const network of ['VISA', 'MASTERCARD'] as const)
        expect(settled(makeRecord({ network }), { transStatus, eci }).findings.eci_flag).toBe(eci)
    for (const outcome of ['Y', 'A', 'N', 'U', 'R'] as const)
      expect(applyResult(makeRecord({ state: 'C' }), { outcome, eci }, START).record?.findings.eci_flag).toBe(eci)
  })

  it('that was not sent, or is none, comes from the table', () => {
    for (const eci of [undefined, '', '5', '005', 5])
      expect(settled(makeRecord(), { transStatus: 'Y', eci }).findings.eci_flag).toBe('05')
  })

  it.each([
    ['data only', { transStatus: 'U', transStatusReason: '80' }, '04', '07'],
    ['an exemption', { transStatus: 'I' }, '06', '07'],
    ['U for another reason', { transStatus: 'U', transStatusReason: '14' }, '00', '07'],
  ] as const)('of %s has its own with Mastercard', (_, ares, mastercard, visa) => {
    expect(settled(makeRecord({ network: 'MASTERCARD' }), ares).findings.eci_flag).toBe(mastercard)
    expect(settled(makeRecord({ network: 'VISA' }), ares).findings.eci_flag).toBe(visa)
    const other = makeRecord({ network: 'MASTERCARD', messageCategory: '02' })
    expect(settled(other, ares).findings.eci_flag).toBe('N0')
  })

  it('of a series’ next payment is 07 with Mastercard', () => {
    const series = { isRecurring: true }
    expect(settled(makeRecord({ network: 'MASTERCARD' }), { transStatus: 'Y' }, series).findings.eci_flag).toBe('07')
    expect(settled(makeRecord({ network: 'VISA' }), { transStatus: 'Y' }, series).findings.eci_flag).toBe('05')
  })

  it('is none while the challenge is under way', () => {
    const pending = settled(makeRecord(), { transStatus: 'C', eci: '05' })
    expect(pending.findings).not.toHaveProperty('eci_flag')
  })
})

describe('a word that this service does not know', () => {
  it('is kept as it was sent', () => {
    const words = { authenticationType: '92', transStatusReason: '87' }
    expect(settled(makeRecord(), { transStatus: 'N', ...words }).findings).toMatchObject({
      authentication_type: '92',
      status_reason: '87',
    })
    const record = makeRecord({ state: 'C' })
    const rreq = RReq.parse({ ...rreqOf(record), transStatus: 'N', challengeCancel: '10', authenticationType: 'x-new' })
    expect(rreq).toMatchObject({ challengeCancel: '10', authenticationType: 'x-new' })
  })

  it('and any other form of what is only recorded costs no outcome', () => {
    const odd = {
      transStatusReason: 1,
      eci: { a: 1 },
      authenticationValue: ['x'],
      acsURL: 'no address',
      acsRenderingType: 'none',
      authenticationType: 'x'.repeat(11),
      cardholderInfo: 'two\nlines',
    }
    expect(settled(makeRecord(), { transStatus: 'Y', ...odd })).toMatchObject({
      state: 'Y',
      findings: { eci_flag: '05', error_no: '0' },
    })
  })
})

function rreqOf(record: Authentication) {
  const { transactionId } = record
  const ids = { threeDSServerTransID: transactionId, dsTransID: randomUUID(), acsTransID: randomUUID() }
  return { messageType: 'RReq', messageVersion: '2.2.0', ...ids }
}

/** Parses a message as it is received, and applies it to the record. */
function settled(record: Authentication, more: Record<string, unknown>, facts = {}): Authentication {
  const message = { ...aresOf(record, 'Y'), authenticationValue: undefined, messageType: 'ARes', ...more }
  const ares = ARes.parse(JSON.parse(JSON.stringify(message)))
  const found = applyAnswer(record, ares, { now: START, windowSize: '05', pan: PAN, ...facts }).record
  if (!found) throw new Error('an open authentication is settled by its answer')
  return found
}

/** Checks the constraints of the row, and that the findings fit the outcome. */
function expectSound({ state, findings, secrets, network }: Authentication): void {
  const { cavv, payload } = secrets.reveal()
  expect(payload !== undefined).toBe(state === 'C')
  if (state === 'OPEN' || state === 'C') {
    expect({ cavv, eci: findings.eci_flag }).toEqual({ cavv: undefined, eci: undefined })
    return
  }
  expect(findings.eci_flag).toBe(ECIS[network]['01'][state])
  if (state === 'Y' || state === 'A') {
    expect(cavv).toBe(CAVV)
    expect(findings).toMatchObject({ enrolled: 'Y', signature_verification: 'Y' })
  }
}
