// The schemas of the 3-D Secure service's answers, from which the OpenAPI document is made. They are not applied to
// answers; tests compare every answer with them.
import { z } from 'zod'
import { ACTION_CODES } from '../../../src/three-ds/jwt.ts'
import { VERSIONS } from '../../../src/three-ds/messages.ts'
import { FINDINGS, type Finding } from '../../../src/three-ds/record.ts'
import { BRANDS } from '../../../src/token/brand.ts'

const text = () => z.string()
const yesNo = () => z.enum(['Y', 'N'])

const KNOWN: Partial<Record<Finding, z.ZodType<string>>> = {
  threeds_version: z.enum(VERSIONS),
  enrolled: z.enum(['Y', 'N', 'U', 'B']),
  signature_verification: yesNo(),
  eci_flag: z.string().length(2).describe('As the directory server named it, else by outcome and network.'),
  error_no: z
    .string()
    .regex(/^(0|[1-5]\d\d)$/)
    .describe('`0`: none.'),
  card_brand: z.enum(BRANDS),
  challenge_required: yesNo(),
}

const findings = Object.fromEntries(FINDINGS.map(name => [name, (KNOWN[name] ?? text()).optional()])) as Record<
  Finding,
  z.ZodOptional<z.ZodType<string>>
>
const outcome = {
  ...findings,
  pares_status: z
    .enum(['Y', 'A', 'N', 'U', 'R', 'C'])
    .optional()
    .describe('Absent until the directory server answers.'),
  cavv: z
    .string()
    .max(4_000)
    .optional()
    .describe('The authentication value (CAVV, AAV, AEVV) as it came, with whatever outcome.'),
  cavv_algorithm: text().optional(),
  authorization_payload: text().optional().describe('Base64 of JSON: what an authorisation needs.'),
  payload: text().optional().describe('What the browser posts to `acs_url` as `creq`; while a challenge is under way.'),
}
const uuid = () => z.guid()

export const AuthenticationRecord = z.strictObject({
  _id: uuid(),
  amount: z.int().describe('Minor units.'),
  threeds_contract_id: uuid(),
  authentication: z.strictObject(outcome),
  card: text().optional().describe('The reuse token.'),
  currency_code: text(),
  created_at: z.iso.datetime(),
  entity_id: uuid(),
  transaction_id: uuid(),
  public_key_alias: text().optional(),
})
export type AuthenticationRecord = z.infer<typeof AuthenticationRecord>

export const Count = z.strictObject({ count: z.int().min(0) })

const { challenge_cancel: _, ...lookedUp } = outcome
export const LookupAnswer = z.strictObject({
  ...lookedUp,
  authentication_id: uuid(),
  transaction_id: uuid(),
  error_no: z.string(),
  token: text().optional().describe('The reuse token of the card, where it has one.'),
})
export type LookupAnswer = z.infer<typeof LookupAnswer>

export const CreatedJwt = z.strictObject({ jwt: text(), threeds_contract_id: uuid() })

export const ValidatedJwt = z.strictObject({
  authentication_id: uuid(),
  action_code: z.enum(ACTION_CODES),
  error_no: z.string(),
  error_desc: text(),
  validation_result: z.strictObject({
    ...Object.fromEntries(
      (
        [
          ...['eci_flag', 'enrolled', 'reason_code', 'reason_desc', 'signature_verification', 'xid'],
          ...['acs_transaction_id', 'ds_transaction_id'],
        ] as Finding[]
      ).map(name => [name, findings[name]]),
    ),
    pares_status: outcome.pares_status,
    cavv: outcome.cavv,
    cavv_algorithm: outcome.cavv_algorithm,
    authorization_payload: outcome.authorization_payload,
  }),
})
export type ValidatedJwt = z.infer<typeof ValidatedJwt>

const error = (description: string) =>
  z
    .strictObject({
      code: z
        .string()
        .regex(/^[1-5]\d\d$/)
        .describe('An error number of this service; not the status.'),
      message: text(),
      details: z.record(z.string(), z.strictObject({ message: z.string(), code: z.string() })),
      timestamp: z.int().describe('Milliseconds since the epoch.'),
    })
    .describe(description)

/** The error bodies by status, for `response: { 200: …, ...ERRORS }`. */
export const ERRORS = {
  400: error('A parameter, the card or the JWT is refused; see code and details.'),
  401: error('No valid credentials.'),
  403: error('The roles do not permit this.'),
  404: error('No such contract, authentication or card, or none of this caller.'),
  429: error('Too much at once, or the rate limit; see Retry-After.'),
  500: error('Unexpected error.'),
}
export const GATEWAY_TIMEOUT = error('The directory server did not answer in time, or could not be reached.')
