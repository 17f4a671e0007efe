// `act`: what a person decided in the console, with the proof that it was this person. Only the console sends it, and its
// signature alone does nothing: a worker checks the proof (workers/act.ts). src/vault/passkey makes the challenge of it.
import { z } from 'zod'
import { holdsPossiblePan } from '../../token/possible-pan.ts'
import { text, uuid } from '../envelope/text.ts'
import { kind } from '../kind-entry.ts'
import type { ActRow } from './act-row.ts'
import { BATCH_ACTS } from './batch-act.ts'
import { FAILED_ACTS } from './failed-act.ts'
import { base64url, credentialId, NewPasskeyParameters, OWN_ACTS } from './own-act.ts'
import { isPersonName, PEOPLE_ACTS } from './people.ts'
import { SCHEDULE_ACTS } from './schedule-act.ts'

/** Every act of a person. */
export const ACT_ROWS = {
  ...BATCH_ACTS,
  ...FAILED_ACTS,
  ...SCHEDULE_ACTS,
  ...OWN_ACTS,
  ...PEOPLE_ACTS,
} as const satisfies Record<string, ActRow>
export type ActName = keyof typeof ACT_ROWS
export const ACTS = Object.keys(ACT_ROWS) as ActName[]
export const rowOf = (name: ActName): ActRow => ACT_ROWS[name]

/** How far ahead `expires_at` may lie, in seconds. */
export const ACT_LASTS_S_MAX = 120

/** What an authenticator answered to `navigator.credentials.get()`; every member is base64url of the bytes. */
export const Assertion = z.strictObject({
  credential_id: credentialId(),
  client_data_json: base64url(8_192),
  authenticator_data: base64url(8_192),
  signature: base64url(2_048),
})
export type Assertion = z.infer<typeof Assertion>

/**
 * What an authenticator answered to `navigator.credentials.create()`, and the signature of the invite's key over it (Ed25519,
 * src/vault/passkey/invite-key.ts).
 */
export const Enrolment = z.strictObject({ signature: base64url(86), ...NewPasskeyParameters.shape })
export type Enrolment = z.infer<typeof Enrolment>

const Fields = z.strictObject({
  act: z.enum(ACTS),
  /**
   * The id of a batch, a schedule or a copy in the failed set; of many copies `failed-<kind>`; for `person.enrol` the invite's; for
   * passkeys and accounts the id of the person, who is the one who acts; for `list.exported` see there.
   */
  subject: text(1, 128),
  parameters: z.record(z.string(), z.unknown()),
  /** What the person saw: `seenOf` of a batch, a schedule or its runs, `digestOf` of copies in the failed set; null for what has no state. */
  seen: z
    .string()
    .regex(/^([A-Z]{1,16}( \d{13})?|[A-Za-z0-9_-]{43})$/)
    .nullable(),
  reason: text(1, 500)
    .refine(reason => !holdsPossiblePan(reason), { params: { reason: 'reason_pan' } })
    .nullable(),
  /** Who acts. For `person.enrol`: who the person will be, or is if the invite is for a further passkey. */
  person_id: uuid(),
  /** 16 random bytes. */
  nonce: z.string().regex(/^[A-Za-z0-9_-]{21}[AQgw]$/),
  /** Whole seconds since the epoch. */
  expires_at: z.int().min(0).max(253_402_300_799),
  /** Null: only for the local person of the embedded engine, and for `list.exported`. */
  proof: z.union([Assertion, Enrolment]).nullable(),
})

export const Act = Fields.superRefine(({ act, subject, parameters, seen, reason, proof }, context) => {
  const isWrong = (field: string) => context.addIssue({ code: 'custom', path: [field], message: 'field_value' })
  const row = rowOf(act)
  if (!row.parameters.safeParse(parameters).success) isWrong('parameters')
  if ((seen !== null) !== row.isSeen) isWrong('seen')
  if (row.asks !== undefined && reason === null) isWrong('reason')
  if (row.on === 'list' && proof !== null) isWrong('proof')
  if (act === 'person.invite' && !isPersonName(subject)) isWrong('subject')
})
export type Act = z.infer<typeof Act>

export const actKind = kind({
  request: Act,
  description: 'Does what a person decided in the console, who proves it with a passkey. System clients only.',
  role: null,
  urgent: true,
  systemClients: ['console'],
  systemOnly: true,
  retell: { from: 'handler' },
})

export function isAssertion(proof: Act['proof']): proof is Assertion {
  return proof !== null && 'authenticator_data' in proof
}

export function isEnrolment(proof: Act['proof']): proof is Enrolment {
  return proof !== null && 'attestation_object' in proof
}
