// The sentence with which the page Now begins: what needs somebody, and never "Well" of what isn't seen.
import { describe, expect, it } from 'vitest'
import { type Facts, shownKinds, type Whole } from '../../../../producers/console/now/facts.ts'
import { needsOf, sentenceOf } from '../../../../producers/console/now/needs.ts'
import { CATALOGUE } from '../../../../src/job/composition.ts'

const NOW = Date.UTC(2026, 10, 23, 12, 3, 20)
const process = (role: string, silentMs: number, kinds: string[] = []) => ({
  host: 'one',
  version: '1.0.0',
  role,
  silentMs,
  kinds,
})
const interactive = CATALOGUE.kinds.filter(kind => kind !== 'token-batch')
const living = [
  process('interactive', 1_000, interactive),
  process('bulk', 900, ['token-batch']),
  process('scheduler', 100),
]
const noted = (name: string, state: 'well' | 'warning' | 'unknown' | 'critical', says = 'x') => ({
  name,
  state,
  says,
  next: null,
  since: NOW - 60_000,
})
const whole = (more: Partial<Whole> = {}): Whole => ({
  kinds: shownKinds(CATALOGUE),
  processes: living,
  checks: [noted('store', 'well')],
  queues: [],
  recent: [],
  waits: [],
  rows: [],
  minutes: [],
  ...more,
})
const facts = (more: Partial<Facts> = {}): Facts => ({
  now: NOW,
  pulse: { watchedMs: 3_000, heardMs: 900, batchesHeardMs: 900, areServersOut: false, isWhole: true },
  whole: whole(),
  batches: [],
  areMore: false,
  ...more,
})
const told = (one: Facts) => {
  const needs = needsOf(one)
  return { ...sentenceOf(needs), of: needs.map(({ what, tone }) => `${what} ${tone}`) }
}

describe('a person who sees everything is told', () => {
  it('that all is well, if the scheduler looked and every worker was heard', () => {
    expect(told(facts())).toEqual({ text: 'Well', tone: 'well', of: [] })
  })

  it('what needs somebody, worst first', () => {
    const checks = [noted('failed jobs', 'warning'), noted('outbox', 'critical'), noted('clock', 'unknown')]
    expect(told(facts({ whole: whole({ checks }) }))).toEqual({
      text: '2 things need you, and something can’t be seen',
      tone: 'bad',
      of: ['outbox bad', 'failed jobs warn', 'clock unknown'],
    })
  })

  it('of which schedule, if only one needs somebody', () => {
    const [one, two] = ['091e6bfe-6a55-4e25-a875-2c65b63d2001', '7e1f0c2a-5b3d-4c6e-8f90-a1b2c3d4e5f6']
    const to = (says: string) =>
      needsOf(facts({ whole: whole({ checks: [noted('schedules', 'critical', says)] }) }))[0]?.to.text
    expect(to(`2026-11-19 of ${one} failed (role_missing), 2026-11-20 of ${one} is late by 3 h`)).toBe(
      `/reports/schedules/${one}`,
    )
    expect(to(`2026-11-19 of ${one} failed (role_missing), 2026-11-20 of ${two} is late by 3 h`)).toBe('/reports')
    expect(to('x')).toBe('/reports')
  })

  it('that nothing is known, when the scheduler has not looked for 10 s; what it said before counts no more', () => {
    const pulse = { watchedMs: 10_001, heardMs: 900, batchesHeardMs: 900, areServersOut: false, isWhole: true }
    const checks = [noted('outbox', 'critical')]
    expect(told(facts({ pulse, whole: whole({ checks }) }))).toEqual({
      text: 'Unknown since 12:03:09',
      tone: 'unknown',
      of: ['scheduler unknown'],
    })
  })

  it('that no scheduler lives: at once if it was ended, and after 30 s if it died', () => {
    const ended = whole({ processes: living.slice(0, 2) })
    const died = whole({ processes: [...living.slice(0, 2), process('scheduler', 30_001)] })
    for (const one of [ended, died]) expect(told(facts({ whole: one }))).toMatchObject({ of: ['scheduler bad'] })
  })

  it('that kinds are not known whose workers were not heard for 8 s, until these count as dead', () => {
    const silent = (ms: number) => whole({ processes: [process('interactive', ms, interactive), ...living.slice(1)] })
    expect(told(facts({ whole: silent(8_000) })).text).toBe('Well')
    const [need] = needsOf(facts({ whole: silent(8_001) }))
    expect(need).toMatchObject({ tone: 'unknown', says: expect.stringMatching(/token-create, .* was heard$/) })
    expect(need?.says).not.toContain('token-batch')
  })

  it('that no worker lives, even while the scheduler’s last look says nothing of it', () => {
    const none = whole({ processes: [process('interactive', 31_000, interactive), process('scheduler', 1)] })
    expect(told(facts({ whole: none }))).toMatchObject({ tone: 'bad', of: ['workers bad'] })
    const said = { ...none, checks: [noted('workers', 'critical')] }
    expect(told(facts({ whole: said })).of).toEqual(['workers bad'])
  })
})

describe('a person who sees some entities is told', () => {
  const batch = (state: 'STALLED' | 'RUNNING', batchNo = 1) => ({
    batchNo,
    batchId: `b ${batchNo}`,
    clientId: 'c',
    createdAt: 0,
    extentRows: 10,
    rowsDone: 1,
    state,
    isSeen: true,
    speed: undefined,
    extentChunks: 2,
    limitChunks: null,
    chunksDone: 1,
    pausedAt: null,
    cancelledAt: null,
    finishedAt: null,
    activeAt: 0,
  })
  const limited = (more: Partial<Facts> = {}) => facts({ whole: undefined, batches: [batch('RUNNING')], ...more })

  it('about their batches alone', () => {
    expect(told(limited()).text).toBe('Well')
    const needs = needsOf(limited({ batches: [batch('STALLED', 7), batch('RUNNING')] }))
    expect(needs).toMatchObject([{ what: 'b 7', tone: 'warn', next: "`tokenmill batch show 'b 7' --client c`" }])
  })

  it.each([
    ['nobody looked', { watchedMs: 10_001 }, 'Unknown since 12:03:09'],
    ['nobody ever looked', { watchedMs: null }, 'Unknown'],
    ['no worker that takes batches was heard', { batchesHeardMs: 8_001 }, 'Unknown since 12:03:11'],
    ['no worker that takes batches is there', { batchesHeardMs: null }, 'Unknown'],
    ['a server is away', { areServersOut: true }, 'Unknown'],
  ])('that it is not known whether these go on, if %s', (_, more, text) => {
    const pulse = { watchedMs: 1, heardMs: 1, batchesHeardMs: 1, areServersOut: false, isWhole: false, ...more }
    const one = limited({ pulse })
    expect(told(one)).toMatchObject({ tone: 'unknown', of: ['batches unknown'] })
    // A moment that nobody saw isn't named.
    expect(told(one).text).toBe(text)
  })
})
