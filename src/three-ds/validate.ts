// The operation "JWT validate": the browser's JWT brings the outcome of a challenge. It is accepted once, if signed
// with the contract's key, and only for its own authentication: as the end of an open challenge, or as a repeat of an
// end that is known.
import { z } from 'zod'
import { isRefusal } from '../errors.ts'
import { parse } from '../job/refusal.ts'
import { applyResult } from './apply-message.ts'
import { JwtValidateRequest } from './areq/lookup-request.ts'
import { type Contract, mayUse } from './contract.ts'
import { type ActionCode, actionOf, errorText, JWT_MS } from './jwt.ts'
import { authenticationValue, eci, xid } from './messages.ts'
import type { IssuedJwt, Ports } from './ports.ts'
import { isProblem, NO_ERROR, type Problem, problem, problemOf } from './problem.ts'
import { type Authentication, type Caller, shownAuthentication } from './record.ts'
import { upToDate } from './write.ts'

/** The members of the network's JWT that are used here. */
const Payload = z.object({
  Payment: z.object({
    ProcessorTransactionId: z.guid().toLowerCase(),
    ExtendedData: z.object({
      PAResStatus: z.enum(['Y', 'A', 'N', 'U', 'R']),
      // As in the messages of directory servers, these members don't decide anything.
      CAVV: authenticationValue(),
      ECIFlag: eci(),
      XID: xid(),
    }),
  }),
})
type Payload = z.infer<typeof Payload>

interface Validated {
  answer: {
    authentication_id: string
    action_code: ActionCode
    error_no: string
    error_desc: string
    validation_result: Record<string, string>
  }
  record: Authentication
  /** This call ended the authentication, so the client is to be notified now. */
  ended: boolean
}

/** Handles the operation "JWT validate" (201). */
export async function validateJwt(ports: Ports, caller: Caller, body: unknown): Promise<Validated | Problem> {
  const parsed = parse(JwtValidateRequest, body, 'body')
  if (isRefusal(parsed)) return problemOf(101, parsed)
  const { authentication_id, threeds_contract_id, jwt } = parsed.value
  const contract = await ports.contracts.find(threeds_contract_id)
  if (!contract || !mayUse(caller, contract))
    return problem(203, { field: 'body.threeds_contract_id', reason: 'field_value' })
  const found = await ports.authentications.find(authentication_id)
  if (!found || found.contractId !== contract.contractId)
    return problem(204, { field: 'body.authentication_id', reason: 'field_value' })
  const believed = await believe(ports, contract, found, jwt)
  return isProblem(believed) ? believed : apply(ports, found, believed)
}

interface Believed {
  jti: string
  payload: Payload
}

async function believe(
  ports: Ports,
  contract: Contract,
  record: Authentication,
  jwt: string,
): Promise<Believed | Problem> {
  const now = ports.clock()
  const verified = await verifyByKeys(ports, contract, jwt, now)
  if ('fault' in verified) {
    if (verified.fault === 'malformed') return problem(401)
    if (verified.fault === 'expired') return problem(403)
    return problem((await isOfAnother(ports, contract, jwt)) ? 406 : 402)
  }
  const issued = await ports.jwts.find(verified.aud)
  const no = misuse(issued, contract, record, now)
  if (no !== undefined) return problem(no)
  const payload = Payload.safeParse(verified.claims['Payload'])
  if (!payload.success) return problem(401)
  if (payload.data.Payment.ProcessorTransactionId !== record.transactionId) return problem(407)
  return { jti: verified.aud, payload: payload.data }
}

/** By the key in use, and by the former one while that is valid. */
async function verifyByKeys({ jwt: signer }: Ports, { key, formerKey }: Contract, jwt: string, now: number) {
  const verified = await signer.verify(key, jwt, now)
  if (!formerKey || !('fault' in verified) || verified.fault !== 'signature') return verified
  return signer.verify(formerKey, jwt, now)
}

/**
 * Whether the JWT is another contract's. It only chooses the error for a wrong signature; nothing in the JWT is
 * trusted.
 */
async function isOfAnother(ports: Ports, contract: Contract, jwt: string): Promise<boolean> {
  const audience = ports.jwt.peekAudience(jwt)
  const issued = audience === undefined ? undefined : await ports.jwts.find(audience)
  return issued !== undefined && issued.contractId !== contract.contractId
}

function misuse(issued: IssuedJwt | undefined, contract: Contract, record: Authentication, now: number) {
  if (!issued) return 404
  if (issued.contractId !== contract.contractId) return 406
  if (issued.authenticationId !== null && issued.authenticationId !== record.authenticationId) return 407
  if (issued.usedAt !== null) return 405
  return issued.issuedAt + JWT_MS < now ? 403 : undefined
}

const WRITES_MAX = 5

/**
 * Marks the JWT as used and writes the record in one transaction, so that of two concurrent calls the second finds the
 * JWT used.
 */
async function apply(ports: Ports, found: Authentication, { jti, payload }: Believed): Promise<Validated | Problem> {
  const { PAResStatus: outcome, CAVV: cavv, ECIFlag: sentEci, XID: xid } = payload.Payment.ExtendedData
  let current: Authentication | undefined = found
  for (let attempt = 0; attempt < WRITES_MAX && current; attempt++) {
    const { record, ended } = await upToDate(ports, current)
    const now = ports.clock()
    const applied = applyResult(record, { outcome, eci: sentEci, cavv, xid }, now)
    if (applied.ignored === 'early') return problem(409)
    if (applied.ignored === 'late') return problem(408)
    const saved = await ports.authentications.saveWithJwt(applied.record, jti, now)
    if (saved === 'used') return problem(405)
    const stands = applied.record ?? record
    if (saved === 'saved')
      return { answer: answerOf(stands), record: stands, ended: ended || applied.ignored === undefined }
    current = await ports.authentications.find(found.authenticationId)
  }
  return problem(500)
}

const RESULT_FIELDS = [
  'cavv',
  'cavv_algorithm',
  'authorization_payload',
  'eci_flag',
  'enrolled',
  'pares_status',
  'reason_code',
  'reason_desc',
  'signature_verification',
  'xid',
  'acs_transaction_id',
  'ds_transaction_id',
] as const

function answerOf(record: Authentication): Validated['answer'] {
  const shown = shownAuthentication(record)
  const error = shown['error_no'] ?? NO_ERROR
  const result = Object.fromEntries(
    RESULT_FIELDS.flatMap(field => (shown[field] === undefined ? [] : [[field, shown[field]] as const])),
  )
  return {
    authentication_id: record.authenticationId,
    action_code: actionOf(record),
    error_no: error,
    error_desc: errorText(error),
    validation_result: result,
  }
}
