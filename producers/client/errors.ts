// The errors that a client throws, besides a `Fault` of the queue. A refusal by the vault isn't an error: it arrives as
// a result.
import { ConfigError } from '../../src/config.ts'
import { fieldsOf, type Refusal } from '../../src/errors.ts'
import { CONTRACT } from '../../src/job/choices.ts'
import { failureOf, type Problem, problemOf } from '../../src/job/problem.ts'

/** The client refused the request and didn't send it. `problem`: the error body that the vault would have answered. */
export class RefusedError extends Error {
  override name = 'RefusedError'
  readonly refusal: Refusal
  readonly problem: Problem

  /** `next`: what would be taken. */
  constructor(refusal: Refusal, now: number, next = '') {
    const fields = fieldsOf(refusal).map(({ field, reason }) => `${field}: ${reason}`)
    super(`not sent: ${fields.join(', ')}${next && `. ${next}`}`)
    this.refusal = refusal
    this.problem = problemOf(failureOf(refusal), now)
  }
}

/** No result came in time. The job stays queued. To wait again, call `result` once more, or submit the same jti. */
export class UnansweredError extends Error {
  override name = 'UnansweredError'
  readonly jti: string

  constructor(jti: string, timeoutMs: number) {
    super(
      `no result of job ${jti} within ${timeoutMs} ms; it stays queued, and the same jti may be asked for again. If no job is ever answered, compare the Redis server and the prefix with the operator's, and ask whether workers run`,
    )
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

/** The installation accepts no job with this key: the key is revoked, retired or another installation's. */
export class KeyNotLiveError extends ConfigError {
  override name = 'KeyNotLiveError'

  constructor({ clientId, kid }: { clientId: string; kid: string }) {
    super(
      `the installation takes nothing from client ${clientId} under key ${kid}: it is unknown there, revoked or past its end. Use the client's current file, or ask the operator`,
    )
  }
}

/** No queue server that can be used answered. */
export class ConnectError extends ConfigError {
  override name = 'ConnectError'

  constructor(message: string, cause?: unknown) {
    super(message)
    this.cause = cause
  }
}

/** The installation speaks another version of the contract than this client. */
export class ContractError extends ConfigError {
  override name = 'ContractError'

  constructor(contract: number) {
    super(
      `the installation speaks version ${contract} of the contract and this client version ${CONTRACT}: install the release of the client that the operator names`,
    )
  }
}
