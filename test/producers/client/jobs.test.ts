// When unanswered jobs are due to be sent again.
import { expect, it } from 'vitest'
import { type Job, openJobs } from '../../../producers/client/jobs.ts'
import type { Result } from '../../../src/job/result.ts'

it('makes a job without refused claims due several times soon: the queue may still have the refused one', () => {
  let now = 0
  const jobs = openJobs(
    60_000,
    () => now,
    () => {},
  )
  const handle = { jti: 'j', receiptId: 'r' }
  const job = { handle, kind: 'token-create', signed: { issuedAt: 0 }, signPlain: async () => ({}) } as unknown as Job
  jobs.join(job, { transient: false })
  const details = { 'body.result_sets': { message: '', code: 'field_unknown' } }
  const refused = { receipt_id: 'r', revision: 1, status: 'FAILED', error: { details } } as unknown as Result
  now = 1_000
  expect(jobs.resolve(refused)).toBe('again')
  const dueAt: number[] = []
  for (; now < 130_000; now += 250) if (jobs.due(now).length > 0) dueAt.push(now)
  expect(dueAt).toEqual([1_250, 1_500, 1_750, 2_000, 62_000, 122_000])
})
