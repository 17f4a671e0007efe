// The errors that a client throws, besides a `Fault` of the queue. A refusal by the vault isn't an error: it arrives as
// a result.
import { fieldsOf, type Refusal } from '../../src/errors.ts'
import { failureOf, type Problem, problemOf } from '../../src/job/problem.ts'

/** The client refused the request and didn't send it. `problem`: the error body that the vault would have answered. */
export class RefusedError extends Error {
  override name = 'RefusedError'
  readonly refusal: Refusal
  readonly problem: Problem

  constructor(refusal: Refusal, now: number) {
    const fields = fieldsOf(refusal).map(({ field, reason }) => `${field}: ${reason}`)
    super(`not sent: ${fields.join(', ')}`)
    this.refusal = refusal
    this.problem = problemOf(failureOf(refusal), now)
  }
}

/** No result came in time. The job stays queued. To wait again, call `result` once more, or submit the same jti. */
export class UnansweredError extends Error {
  override name = 'UnansweredError'
  readonly jti: string

  constructor(jti: string, timeoutMs: number) {
    super(`no result of job ${jti} within ${timeoutMs} ms; it stays queued, and the same jti may be asked for again`)
    this.jti = jti
  }
}

/** The client was closed while the caller waited. */
export class ClosedError extends Error {
  override name = 'ClosedError'

  constructor() {
    super('the client was closed')
  }
}
