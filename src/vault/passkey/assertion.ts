// Verifies what a passkey signed (WebAuthn level 3, section 7.2), with node:crypto alone. Who the passkey belongs to, and what
// its owner may do, is decided elsewhere.
import { createHash, verify } from 'node:crypto'
import type { Assertion } from '../../job/system/act.ts'
import { importPublicJwk } from '../client-key.ts'
import { isOfDomain, readAuthenticatorData } from './authenticator-data.ts'
import { type Asked, bytesOf, clientDataFlaw, type PasskeyFlaw } from './client-data.ts'

export type { Asked, PasskeyFlaw } from './client-data.ts'

/** The passkey's row. */
export interface Passkey {
  publicJwk: Record<string, unknown>
  alg: string
  /** As it was stored last. */
  signCount: number
}

/**
 * The counter to store, or why the passkey is refused. The user must be present and verified. A counter that didn't grow is
 * refused, unless the authenticator doesn't count: then both are 0.
 */
export function verifyAssertion(
  assertion: Omit<Assertion, 'credential_id'>,
  { publicJwk, alg, signCount, ...asked }: Passkey & Asked,
): { signCount: number } | PasskeyFlaw {
  const clientData = bytesOf(assertion.client_data_json)
  const authenticatorData = bytesOf(assertion.authenticator_data)
  const signature = bytesOf(assertion.signature)
  const said = authenticatorData && readAuthenticatorData(authenticatorData)
  if (!clientData || !signature || !said) return 'form'
  const flaw = clientDataFlaw(clientData, 'webauthn.get', asked)
  if (flaw) return flaw
  if (!isOfDomain(said, asked.rpId)) return 'rp_id'
  const signed = Buffer.concat([authenticatorData, createHash('sha256').update(clientData).digest()])
  if (!isSigned(signed, signature, { publicJwk, alg })) return 'signature'
  if (!said.isPresent || !said.isVerified) return 'unverified'
  const counts = said.signCount !== 0 || signCount !== 0
  return counts && said.signCount <= signCount ? 'counter' : { signCount: said.signCount }
}

function isSigned(data: Buffer, signature: Buffer, { publicJwk, alg }: Pick<Passkey, 'publicJwk' | 'alg'>): boolean {
  try {
    const imported = importPublicJwk({ ...publicJwk, alg })
    // An elliptic signature of a passkey is DER, unlike one of a JWS; RSA's padding is PKCS #1.
    return verify(imported.alg === 'EdDSA' ? null : 'sha256', data, imported.key, signature)
  } catch {
    return false
  }
}
