// Acts of a person on what is the person's own: the way in by an invite, passkeys, accounts, and lists that the person takes. None has
// a state that anybody saw.
import { z } from 'zod'
import { AccountParameters } from './account.ts'
import { type ActRow, noFacts, PERSON_ROLES } from './act-row.ts'
import { ExportParameters } from './list-exports.ts'

export const base64url = (most: number) =>
  z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/)
    .max(most)
/** At most 1,023 bytes (WebAuthn level 3, section 4). */
export const credentialId = () => base64url(1_364)

/** A new passkey, as its authenticator made it for `creationChallengeOf` the request. */
export const NewPasskeyParameters = z.strictObject({
  credential_id: credentialId(),
  client_data_json: base64url(8_192),
  attestation_object: base64url(32_768),
})
/** A passkey of the person. */
export const PasskeyParameters = z.strictObject({ credential_id: credentialId() })

const COMMON = { roles: PERSON_ROLES, reach: 'own', isSeen: false } as const satisfies Partial<ActRow>
const ACCOUNT = {
  ...COMMON,
  on: 'identity',
  noun: 'an account',
  parameters: AccountParameters,
  facts: ({ parameters }) => ({ issuer: parameters['issuer'], sub: parameters['subject'] }),
} as const satisfies Partial<ActRow>

export const OWN_ACTS = {
  'person.enrol': {
    ...COMMON,
    on: 'invited',
    verb: 'Use',
    noun: 'an invite',
    isFinal: true,
    parameters: z.strictObject({}),
    facts: ({ subject }) => ({ invite_id: subject }),
  },
  'passkey.add': {
    ...COMMON,
    on: 'passkey',
    verb: 'Add',
    noun: 'a passkey',
    isFinal: false,
    parameters: NewPasskeyParameters,
    facts: ({ parameters }) => ({ added: parameters['credential_id'] }),
  },
  'passkey.remove': {
    ...COMMON,
    on: 'passkey',
    verb: 'Remove',
    noun: 'a passkey',
    isFinal: true,
    parameters: PasskeyParameters,
    facts: ({ parameters }) => ({ removed: parameters['credential_id'] }),
  },
  // Nobody touches a passkey for it: the act has no effect but its row in the audit, which says that it isn't proved.
  'list.exported': {
    ...COMMON,
    on: 'list',
    verb: 'Take',
    noun: 'a list',
    reach: 'sight',
    isFinal: false,
    parameters: ExportParameters,
    facts: noFacts,
  },
  'identity.connect': { ...ACCOUNT, verb: 'Connect', isFinal: false },
  'identity.disconnect': { ...ACCOUNT, verb: 'Disconnect', isFinal: true },
} as const satisfies Record<string, ActRow>
