// Reads a new passkey (WebAuthn level 3, section 7.1). The attestation's statement about the make of the authenticator isn't
// read: no make is trusted more than another here, and browsers are asked for none.
import type { Enrolment } from '../../job/system/act.ts'
import { importPublicJwk } from '../client-key.ts'
import {
  authenticatorDataIn,
  isOfDomain,
  jwkOf,
  type PasskeyAlgorithm,
  readAuthenticatorData,
} from './authenticator-data.ts'
import { type Asked, bytesOf, clientDataFlaw, type PasskeyFlaw } from './client-data.ts'

export interface NewPasskey {
  /** base64url. */
  credentialId: string
  publicJwk: Record<string, unknown>
  alg: PasskeyAlgorithm
  signCount: number
}

/** The new passkey, or why it is refused. The user must be present and verified. */
export function readAttestation(
  attestation: Pick<Enrolment, 'client_data_json' | 'attestation_object'>,
  asked: Asked,
): NewPasskey | PasskeyFlaw {
  const clientData = bytesOf(attestation.client_data_json)
  const object = bytesOf(attestation.attestation_object)
  const data = object && authenticatorDataIn(object)
  const said = data && readAuthenticatorData(data)
  if (!clientData || !said?.made) return 'form'
  const flaw = clientDataFlaw(clientData, 'webauthn.create', asked)
  if (flaw) return flaw
  if (!isOfDomain(said, asked.rpId)) return 'rp_id'
  if (!said.isPresent || !said.isVerified) return 'unverified'
  const key = jwkOf(said.made.coseKey)
  if (!key || !isKey(key)) return 'algorithm'
  return { ...key, credentialId: said.made.credentialId.toString('base64url'), signCount: said.signCount }
}

function isKey({ publicJwk, alg }: Pick<NewPasskey, 'publicJwk' | 'alg'>): boolean {
  try {
    return importPublicJwk({ ...publicJwk, alg }).alg === alg
  } catch {
    return false
  }
}
