// When unanswered jobs are due to be sent again.
import { expect, it } from 'vitest'
import { type Job, openJobs } from '../../../producers/client/jobs.ts'
import type { Result } from '../../../src/job/answer/result.ts'

it('makes a job due several times soon whose older envelope expired: the queue may still have that one', () => {
  let now = 0
  const jobs = openJobs(
    60_000,
    () => now,
    () => {},
  )
  const handle = { jti: 'j', receiptId: 'r' }
  const job = { handle, kind: 'token-create', signed: { issuedAt: 1 }, envelopes: new Set() } as unknown as Job
  jobs.join(job, { transient: false })
  const details = { body: { message: '', code: 'envelope_expired' } }
  const acceptedAt = new Date(0).toISOString()
  const expired = { receipt_id: 'r', revision: 1, status: 'FAILED', accepted_at: acceptedAt, error: { details } }
  now = 1_000
  expect(jobs.resolve(expired as unknown as Result)).toBe('again')
  const dueAt: number[] = []
  for (; now < 130_000; now += 250) if (jobs.due(now).length > 0) dueAt.push(now)
  expect(dueAt).toEqual([1_250, 1_500, 1_750, 2_000, 62_000, 122_000])
})

it('a job takes no answer to an envelope that it wasn’t sent in, is sent again soon instead, and a handle likewise', async () => {
  const answered: number[] = []
  const jobs = openJobs(
    60_000,
    () => 1_000,
    () => answered.push(1),
  )
  const handle = { jti: 'j', receiptId: 'r', envelope: 'own' }
  const envelopes = new Set(['own', 'signed again'])
  const job = { handle, kind: 'token-create', signed: { issuedAt: 0 }, envelopes } as unknown as Job
  jobs.join(job, { transient: false })
  const { answer } = jobs.wait(handle)
  const result = { receipt_id: 'r', revision: 1, status: 'SUCCEEDED' }
  expect(jobs.resolve({ ...result, envelope: 'other' } as never)).toBe('again')
  expect([answered, jobs.due(1_300)]).toEqual([[], [job]])
  expect(jobs.resolve({ ...result, envelope: 'own' } as never)).toBe('claimed')
  expect(await answer).toMatchObject({ envelope: 'own' })
  await job.ended?.promise
  expect(answered).toHaveLength(1)
  // Whoever holds the handle of another envelope waits on.
  const other = jobs.wait({ ...handle, envelope: 'other' })
  expect(jobs.resolve({ ...result, envelope: 'own' } as never)).toBe('claimed')
  jobs.resolve({ ...result, envelope: 'other' } as never)
  expect(await other.answer).toMatchObject({ envelope: 'other' })
  jobs.close()
})
