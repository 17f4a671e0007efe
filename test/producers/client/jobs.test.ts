// When unanswered jobs are due to be sent again, and which result is the answer to a job.
import { expect, it } from 'vitest'
import type { Handle } from '../../../producers/client/interface.ts'
import { type Job, openJobs } from '../../../producers/client/jobs.ts'
import type { Result } from '../../../src/job/answer/result.ts'

const HANDLE: Handle = { jti: 'j', receiptId: 'r', kind: 'token-create', answers: 'asked', envelope: 'own' }

function jobOf(envelopes: readonly string[] = ['own'], issuedAt = 0): Job {
  return { handle: HANDLE, kind: HANDLE.kind, signed: { issuedAt }, envelopes: new Set(envelopes) } as unknown as Job
}

function resultOf(more: Partial<Result>): Result {
  const { receiptId: receipt_id, kind, answers, envelope } = HANDLE
  return { receipt_id, revision: 1, status: 'SUCCEEDED', kind, answers, envelope, ...more } as Result
}

function openClocked() {
  const clock = { now: 1_000 }
  const answered: number[] = []
  const jobs = openJobs(
    60_000,
    () => clock.now,
    () => answered.push(clock.now),
  )
  return { jobs, clock, answered }
}

it('makes a job due several times soon whose older envelope expired: the queue may still have that one', () => {
  const { jobs, clock } = openClocked()
  clock.now = 0
  jobs.join(jobOf(['own'], 1), { transient: false })
  const details = { body: { message: '', code: 'envelope_expired' } }
  const acceptedAt = new Date(0).toISOString()
  clock.now = 1_000
  const expired = { status: 'FAILED', accepted_at: acceptedAt, error: { details } } as unknown as Partial<Result>
  expect(jobs.resolve(resultOf(expired))).toBe('again')
  const dueAt: number[] = []
  for (; clock.now < 130_000; clock.now += 250) if (jobs.due(clock.now).length > 0) dueAt.push(clock.now)
  expect(dueAt).toEqual([1_250, 1_500, 1_750, 2_000, 62_000, 122_000])
})

/** What somebody who may write to a results queue can put back there: each was once signed for this client and jti. */
const REPLAYS: [string, Partial<Result>][] = [
  ['a refusal of another job', { status: 'FAILED', revision: 0, envelope: 'earlier', answers: 'else' }],
  [
    'a refusal of another job that was answered before',
    { status: 'FAILED', revision: 3, envelope: 'earlier', answers: 'else' },
  ],
  ['a refusal of the same request, sent earlier', { status: 'FAILED', revision: 3, envelope: 'earlier' }],
  [
    'a refusal of a request that was not understood',
    { status: 'FAILED', envelope: 'earlier', answers: undefined } as never,
  ],
  ['the answer to a job of another kind', { kind: 'token-update', envelope: 'earlier', answers: 'else' }],
  ['the answer to another request', { envelope: 'earlier', answers: 'else' }],
  ['an answer whose kind is another one', { kind: 'token-update' }],
  ['a later revision of another job', { status: 'FAILED', revision: 9, envelope: 'earlier', answers: 'else' }],
]

it.each(REPLAYS)('%s is no answer to a job: it is sent again soon', async (_, replay) => {
  const { jobs, answered } = openClocked()
  const job = jobOf(['own', 'signed again'])
  jobs.join(job, { transient: false })
  const { answer } = jobs.wait(HANDLE)
  expect(jobs.resolve(resultOf(replay))).toBe('again')
  expect([answered, jobs.due(1_300)]).toEqual([[], [job]])
  expect(jobs.resolve(resultOf({ status: 'FAILED', envelope: 'signed again' }))).toBe('claimed')
  expect(await answer).toMatchObject({ envelope: 'signed again' })
  expect(await jobs.wait(HANDLE).answer).toMatchObject({ envelope: 'signed again' })
  await job.ended?.promise
  expect(answered).toHaveLength(1)
})

it.each(REPLAYS)('%s is no answer for a handle, and does not replace the answer that was found', async (_, replay) => {
  const { jobs } = openClocked()
  const { answer } = jobs.wait(HANDLE)
  expect(jobs.resolve(resultOf(replay))).toBe('unclaimed')
  // A receipt's revision is above those of all answers before it.
  expect(jobs.resolve(resultOf({ envelope: 'sent again by another process', revision: 4 }))).toBe('claimed')
  expect(await answer).toMatchObject({ status: 'SUCCEEDED', answers: 'asked' })
  jobs.resolve(resultOf(replay))
  expect(await jobs.wait(HANDLE).answer).toMatchObject({ revision: 4 })
  jobs.close()
})

it('a job that was undone is told by a later revision, of the same request or of an envelope it was sent in', async () => {
  for (const answers of ['asked', undefined]) {
    const { jobs } = openClocked()
    jobs.join(jobOf(), { transient: false })
    expect(jobs.resolve(resultOf({}))).toBe('claimed')
    expect(jobs.resolve(resultOf({ revision: 2, status: 'FAILED', answers } as never))).toBe('claimed')
    expect(await jobs.wait(HANDLE).answer).toMatchObject({ revision: 2 })
  }
})

it('whoever holds the handle of another request waits on', async () => {
  const { jobs } = openClocked()
  jobs.join(jobOf(), { transient: false })
  const other = jobs.wait({ ...HANDLE, answers: 'other', envelope: 'other' })
  expect(jobs.resolve(resultOf({}))).toBe('claimed')
  jobs.resolve(resultOf({ answers: 'other', envelope: 'other' }))
  expect(await other.answer).toMatchObject({ envelope: 'other' })
  jobs.close()
})
