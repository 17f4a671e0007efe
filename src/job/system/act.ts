// `act`: what a person decided in the console, with the proof that it was this person. Only the console sends it, and its
// signature alone does nothing: a worker checks the proof (workers/act.ts). src/vault/passkey makes the challenge of it.
import { z } from 'zod'
import { holdsPossiblePan } from '../../token/possible-pan.ts'
import { kindName, text, uuid } from '../envelope/text.ts'
import { kind } from '../kind-entry.ts'
import { AccountParameters } from './account.ts'
import { ExportParameters } from './list-exports.ts'
import { isPersonName, PEOPLE_ACTS, PEOPLE_PARAMETERS } from './people.ts'
import { ScheduleParameters, ScheduleRunParameters } from './schedule-act.ts'

export const ACTS = [
  ...(['batch.pause', 'batch.resume', 'batch.cancel', 'batch.note'] as const),
  ...(['failed.retry', 'failed.discard'] as const),
  ...(['schedule.pause', 'schedule.resume', 'schedule.run'] as const),
  ...(['person.enrol', 'passkey.add', 'passkey.remove', 'list.exported'] as const),
  ...(['identity.connect', 'identity.disconnect'] as const),
  ...PEOPLE_ACTS,
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

const clientId = () => z.string().regex(/^c[a-z0-9]{25}$/)

/** A batch's id is unique for each client only. */
export const BatchParameters = z.strictObject({ client_id: clientId() })
/** How many copies one act may be about. */
export const FAILED_MOST = 1_000

const moment = () => z.int().min(0).max(253_402_300_799_999)
/** One copy in the failed set: the subject is its id. */
const OneFailed = z.strictObject({ kind: kindName() })
/**
 * All copies of the kind that the filter matches and that failed at `up_to` or before. `count`: how many the person saw.
 * Moments in ms since the epoch.
 */
const ManyFailed = z.strictObject({
  kind: kindName(),
  filter: z.strictObject({
    code: z
      .string()
      .regex(/^[a-z_]{1,40}$/)
      .exactOptional(),
    client_id: text(1, 128).exactOptional(),
    since: moment().exactOptional(),
  }),
  count: z.int().min(1).max(FAILED_MOST),
  up_to: moment(),
})
/** How many copies may be ticked. */
export const TICKED_MOST = 50
/** These copies of the kind, each once. */
const TickedFailed = z.strictObject({
  kind: kindName(),
  ids: z
    .array(z.string().regex(/^f_[\w-]{43}$/))
    .min(1)
    .max(TICKED_MOST)
    .refine(ids => new Set(ids).size === ids.length),
})
export const FailedParameters = z.union([OneFailed, ManyFailed, TickedFailed])
export type FailedParameters = z.infer<typeof FailedParameters>

/** The subject of an act on many copies: the name of their queue. */
export const failedSubject = ({ kind }: { kind: string }) => `failed-${kind}`

/** A new passkey, as its authenticator made it for `creationChallengeOf` the request. */
export const NewPasskeyParameters = Enrolment.omit({ signature: true })
/** A passkey of the person. */
export const PasskeyParameters = z.strictObject({ credential_id: credentialId() })
const PARAMETERS: Record<ActName, z.ZodType> = {
  'batch.pause': BatchParameters,
  'batch.resume': BatchParameters,
  'batch.cancel': BatchParameters,
  'batch.note': BatchParameters,
  'failed.retry': FailedParameters,
  'failed.discard': FailedParameters,
  'schedule.pause': ScheduleParameters,
  'schedule.resume': ScheduleParameters,
  'schedule.run': ScheduleRunParameters,
  'person.enrol': z.strictObject({}),
  // Nobody touches a passkey for it: the act has no effect but its row in the audit, which says that it isn't proved.
  'list.exported': ExportParameters,
  'passkey.add': NewPasskeyParameters,
  'passkey.remove': PasskeyParameters,
  'identity.connect': AccountParameters,
  'identity.disconnect': AccountParameters,
  ...PEOPLE_PARAMETERS,
}
/** Acts on what has no state that anybody saw: an invite, a list, one's own passkeys and accounts, or a person who isn't there yet. */
const UNSEEN: ReadonlySet<ActName> = new Set<ActName>([
  ...(['person.enrol', 'passkey.add', 'passkey.remove', 'list.exported'] as const),
  ...(['identity.connect', 'identity.disconnect', 'person.invite'] as const),
])

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
  if (!PARAMETERS[act].safeParse(parameters).success) isWrong('parameters')
  if ((seen === null) !== UNSEEN.has(act)) isWrong('seen')
  // The reason is the note.
  if (act === 'batch.note' && reason === null) isWrong('reason')
  if (act === 'list.exported' && proof !== null) isWrong('proof')
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
