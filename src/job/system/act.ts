// `act`: what a person decided in the console, with the proof that it was this person. Only the console sends it, and its
// signature alone does nothing: a worker checks the proof (workers/act.ts). src/vault/passkey makes the challenge of it.
import { z } from 'zod'
import { holdsPossiblePan } from '../../token/possible-pan.ts'
import { text, uuid } from '../envelope/text.ts'

export const ACTS = [
  ...(['batch.pause', 'batch.resume', 'batch.cancel'] as const),
  ...(['person.enrol', 'passkey.add', 'passkey.remove'] as const),
] as const
export type ActName = (typeof ACTS)[number]

/** How far ahead `expires_at` may lie, in seconds. */
export const ACT_LASTS_S_MAX = 120

const base64url = (most: number) =>
  z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/)
    .max(most)
/** At most 1,023 bytes (WebAuthn level 3, section 4). */
const credentialId = () => base64url(1_364)

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
export const Enrolment = z.strictObject({
  signature: base64url(86),
  credential_id: credentialId(),
  client_data_json: base64url(8_192),
  attestation_object: base64url(32_768),
})
export type Enrolment = z.infer<typeof Enrolment>

/** A batch's id is unique for each client only. */
export const BatchParameters = z.strictObject({ client_id: z.string().regex(/^c[a-z0-9]{25}$/) })
/** A new passkey, as its authenticator made it for `creationChallengeOf` the request. */
export const NewPasskeyParameters = Enrolment.omit({ signature: true })
/** A passkey of the person. */
export const PasskeyParameters = z.strictObject({ credential_id: credentialId() })
const PARAMETERS: Record<ActName, z.ZodType> = {
  'batch.pause': BatchParameters,
  'batch.resume': BatchParameters,
  'batch.cancel': BatchParameters,
  'person.enrol': z.strictObject({}),
  'passkey.add': NewPasskeyParameters,
  'passkey.remove': PasskeyParameters,
}
/** Acts on what nobody has seen change: an invite, or one's own passkeys. */
const UNSEEN: ReadonlySet<ActName> = new Set(['person.enrol', 'passkey.add', 'passkey.remove'])

const Fields = z.strictObject({
  act: z.enum(ACTS),
  /** The batch's id; for `person.enrol` the invite's; for passkeys the id of the person, who is the one who acts. */
  subject: text(1, 128),
  parameters: z.record(z.string(), z.unknown()),
  /** The state that the person saw: `seenOf` of a batch; else null. */
  seen: z
    .string()
    .regex(/^[A-Z]{1,16}( \d{13})?$/)
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
  /** Null: only for the local person of the embedded engine. */
  proof: z.union([Assertion, Enrolment]).nullable(),
})

export const Act = Fields.superRefine(({ act, parameters, seen }, context) => {
  const isWrong = (field: string) => context.addIssue({ code: 'custom', path: [field], message: 'field_value' })
  if (!PARAMETERS[act].safeParse(parameters).success) isWrong('parameters')
  // Everybody who acts on a batch has seen the batch.
  if ((seen === null) !== UNSEEN.has(act)) isWrong('seen')
})
export type Act = z.infer<typeof Act>

export function isAssertion(proof: Act['proof']): proof is Assertion {
  return proof !== null && 'authenticator_data' in proof
}

export function isEnrolment(proof: Act['proof']): proof is Enrolment {
  return proof !== null && 'attestation_object' in proof
}
