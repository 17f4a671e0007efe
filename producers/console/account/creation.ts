// What a browser needs to make a passkey (`navigator.credentials.create`).
import type { ConsoleDeps } from '../deps.ts'
import { TOUCH_MS } from '../session/sign-in.ts'

/** COSE's numbers of the algorithms that workers verify: Ed25519, ES256, RS256. */
const ALGORITHMS = [-8, -7, -257]

export interface Creation {
  personId: string
  name: string
  challenge: Buffer
  /** The ids of passkeys the person has: a device that holds one of them makes no other. */
  known: readonly string[]
}

/** Bytes are base64url, as everywhere in JSON here. */
export function creationOf(
  { name: installation, site }: Pick<ConsoleDeps, 'name' | 'site'>,
  { personId, name, challenge, known }: Creation,
): object {
  return {
    challenge: challenge.toString('base64url'),
    rp: { id: site().rpId, name: `tokenmill ${installation}` },
    user: {
      id: Buffer.from(personId.replaceAll('-', ''), 'hex').toString('base64url'),
      name,
      displayName: name,
    },
    pubKeyCredParams: ALGORITHMS.map(alg => ({ type: 'public-key', alg })),
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    excludeCredentials: known,
    attestation: 'none',
    timeout: TOUCH_MS,
  }
}
