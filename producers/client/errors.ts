// What a client throws beside a `Fault` of the queue. What the vault refuses is no error: it comes as a result.
import type { Refusal } from '../../src/errors.ts'
import { fieldsOf, type Problem, problemOf } from '../../src/job/problem.ts'

/** The request was refused here and never sent; `problem` is the body that the vault would have answered with. */
export class RefusedError extends Error {
  override name = 'RefusedError'
  readonly refusal: Refusal
  readonly problem: Problem

  constructor(refusal: Refusal, now: number) {
    const fields = fieldsOf(refusal).map(({ field, reason }) => `${field}: ${reason}`)
    super(`not sent: ${fields.join(', ')}`)
    this.refusal = refusal
    this.problem = problemOf(fieldsOf(refusal), now)
  }
}

/** No result came in time. The job is still queued and still repeated: ask for its result again, or send the same jti. */
export class UnansweredError extends Error {
  override name = 'UnansweredError'
  readonly jti: string

  constructor(jti: string, timeoutMs: number) {
    super(`no result of job ${jti} within ${timeoutMs} ms; it stays queued, and the same jti may be asked for again`)
    this.jti = jti
  }
}

/** The client was closed while this was awaited. */
export class ClosedError extends Error {
  override name = 'ClosedError'

  constructor() {
    super('the client was closed')
  }
}
