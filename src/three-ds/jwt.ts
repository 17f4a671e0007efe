// The two JWTs that the browser carries: one begins a session, the other brings the outcome of a challenge back. Both
// are HS256 with the contract's key. The vault signs them.

import { isRefusal } from '../errors.ts'
import { parse } from '../job/refusal.ts'
import { JwtCreateRequest } from './areq/lookup-request.ts'
import { mayUse } from './contract.ts'
import type { FinalOutcome } from './outcome.ts'
import type { Ports } from './ports.ts'
import { ERRORS, type ErrorNo, NO_ERROR, type Problem, problem, problemOf } from './problem.ts'
import type { Authentication, Caller } from './record.ts'
import { isFinal } from './transition.ts'

/** How long a JWT is valid, in ms. */
export const JWT_MS = 2 * 3_600_000

export const ACTION_CODES = ['SUCCESS', 'NOACTION', 'FAILURE', 'ERROR'] as const
export type ActionCode = (typeof ACTION_CODES)[number]

/** The action for each outcome. A U that is caused by an error is recognised by the record's error number. */
const ACTIONS = {
  Y: 'SUCCESS',
  A: 'SUCCESS',
  N: 'FAILURE',
  U: 'NOACTION',
  R: 'FAILURE',
} as const satisfies Record<FinalOutcome, ActionCode>

interface CreatedJwt {
  jwt: string
  threeds_contract_id: string
}

/** Handles the operation "JWT create" (201). */
export async function createJwt(ports: Ports, caller: Caller, body: unknown): Promise<CreatedJwt | Problem> {
  const parsed = parse(JwtCreateRequest, body, 'body')
  if (isRefusal(parsed)) return problemOf(101, parsed)
  const contract = await ports.contracts.find(parsed.value.threeds_contract_id)
  if (!contract || !mayUse(caller, contract))
    return problem(203, { field: 'body.threeds_contract_id', reason: 'field_value' })
  const issuedAt = ports.clock()
  const jti = ports.newUuid()
  const jwt = await ports.jwt.sign(contract.key, {
    jti,
    iss: contract.issuer,
    OrgUnitId: contract.orgUnitId,
    Payload: {},
    ...lifeOf(issuedAt),
  })
  // The JWT is returned only once its row is inserted: without the row it would be useless.
  await ports.jwts.insert({ jti, contractId: contract.contractId, issuedAt })
  return { jwt, threeds_contract_id: contract.contractId }
}

function lifeOf(now: number): { iat: number; exp: number } {
  const iat = Math.floor(now / 1000)
  return { iat, exp: iat + JWT_MS / 1000 }
}

/**
 * A JWT with the outcome of an ended authentication, which the browser carries to the shop; undefined if the
 * authentication didn't begin with a JWT of this service.
 */
export async function signOutcome(ports: Ports, record: Authentication): Promise<string | undefined> {
  const contract = record.jti === null ? undefined : await ports.contracts.find(record.contractId)
  if (!contract || record.jti === null || !isFinal(record.state)) return undefined
  const { findings, state } = record
  return ports.jwt.sign(contract.key, {
    jti: ports.newUuid(),
    iss: contract.issuer,
    aud: record.jti,
    ...lifeOf(ports.clock()),
    ConsumerSessionId: record.jti,
    Payload: {
      Validated: state === 'Y' || state === 'A',
      ActionCode: actionOf(record),
      ErrorNumber: Number(findings.error_no ?? NO_ERROR),
      ErrorDescription: findings.error_desc ?? 'Success',
      Payment: {
        Type: 'CCA',
        ProcessorTransactionId: record.transactionId,
        ExtendedData: {
          ...(record.secrets.reveal().cavv === undefined ? {} : { CAVV: record.secrets.reveal().cavv }),
          ...(findings.eci_flag === undefined ? {} : { ECIFlag: findings.eci_flag }),
          ...(findings.enrolled === undefined ? {} : { Enrolled: findings.enrolled }),
          ...(findings.signature_verification === undefined
            ? {}
            : { SignatureVerification: findings.signature_verification }),
          PAResStatus: state,
        },
      },
    },
  })
}

/**
 * What the shop should do: NOACTION while the authentication hasn't ended; ERROR after an error of this service or of
 * the network, whatever the outcome is; else the outcome's action.
 */
export function actionOf({ state, findings }: Pick<Authentication, 'state' | 'findings'>): ActionCode {
  if (!isFinal(state)) return 'NOACTION'
  if (findings.error_no !== undefined && findings.error_no !== NO_ERROR) return 'ERROR'
  return ACTIONS[state]
}

export function errorText(errorNo: string): string {
  return Object.hasOwn(ERRORS, errorNo) ? ERRORS[Number(errorNo) as ErrorNo].text : 'Success'
}
