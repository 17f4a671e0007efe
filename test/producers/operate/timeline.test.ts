// The timeline of a job: its steps in order, whatever the clocks of sender, worker and store say.
import { describe, expect, it } from 'vitest'
import type { PlainFacts } from '../../../producers/operate/job-facts.ts'
import { timelineOf } from '../../../producers/operate/timeline.ts'

const at = (second: number) => new Date(Date.UTC(2026, 10, 23, 3, 0, second)).toISOString()
const told = { revision: 1, queue: 'results-c', state: 'read' } as const
const base: PlainFacts = {
  receipt_id: 'r',
  client: { id: 'c', name: 'shop' },
  kind: 'token-create',
  calls: [],
  told: [],
}
const decided: NonNullable<PlainFacts['decided']> = {
  at: at(5),
  status: 'SUCCEEDED',
  code: 200,
  outcome: 'CREATED',
  reasons: [],
}
const whats = (facts: PlainFacts) => timelineOf(facts).map(({ what }) => what)

describe('the timeline of a job', () => {
  it('puts an answer behind its decision, also if the store’s clock is behind the worker’s', () => {
    const facts = { ...base, accepted_at: at(1), attempts: 3, decided, told: [{ ...told, at: at(4) }] }
    expect(whats(facts)).toEqual(['sent', 'decided', 'answered'])
    expect(timelineOf(facts)[1]?.text).toContain('This was attempt 3')
  })

  it('shows an earlier refusal before the decision, and a reversal behind it', () => {
    const call = { action: 'PROVISION', state: 'DONE', reversal: 'COMPLETED' } as const
    const facts: PlainFacts = {
      ...base,
      accepted_at: at(1),
      attempts: 1,
      decided: { ...decided, status: 'FAILED', code: 400, reversal: 'COMPLETED' },
      calls: [{ ...call, recorded_at: at(3), changed_at: at(7) }],
      told: [
        { ...told, at: at(2), revision: 0, says: { code: 400, reasons: [] } },
        { ...told, at: at(6) },
      ],
    }
    expect(whats(facts)).toEqual(['sent', 'answered', 'called', 'decided', 'reversed', 'answered'])
    expect(timelineOf(facts).map(step => step.tone)).toEqual(['plain', 'plain', 'plain', 'warn', 'plain', 'plain'])
  })

  it('of an undecided job ends with where the job is now', () => {
    const operation = { state: 'QUEUED', accepted_at: at(1), until: at(50) } as const
    const queued = { queue: 'token-create', state: 'waiting', workers: 0 } as const
    const steps = timelineOf({ ...base, operation, queued })
    expect(steps.map(({ what, tone }) => [what, tone])).toEqual([
      ['accepted', 'plain'],
      ['queued', 'bad'],
    ])
    expect(timelineOf(base)).toEqual([])
  })

  it('needs somebody where an answer waits, is unread, or the job failed for good', () => {
    const failed = { id: 'f_1', kind: 'token-create', code: 'contention', attempts: 8, at: at(9), can_be_retried: true }
    for (const [state, tone] of [
      ['waiting', 'warn'],
      ['unread', 'warn'],
      ['published', 'plain'],
    ] as const)
      expect(timelineOf({ ...base, told: [{ ...told, at: at(4), state }] })[0]?.tone).toBe(tone)
    expect(timelineOf({ ...base, failed: { ...failed, kind: 'token-create' } })[0]).toMatchObject({ tone: 'bad' })
  })
})
