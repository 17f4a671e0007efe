// What a browser says about the use of a passkey (WebAuthn level 3, section 5.8.1), and how it is compared with what was asked.
import { timingSafeEqual } from 'node:crypto'
import { readObject } from '../../job/envelope/strict-json.ts'

/** Why a passkey is refused. The reasons of acts begin with `passkey_` and one of these words. */
export type PasskeyFlaw =
  | 'form'
  | 'algorithm'
  | 'challenge'
  | 'origin'
  | 'rp_id'
  | 'unverified'
  | 'signature'
  | 'counter'

export interface Asked {
  /** The bytes that the browser was given. */
  challenge: Buffer
  /** As browsers send it: `https://console.example.com`. */
  origin: string
  /** The domain of the origin. */
  rpId: string
}

/** `json`: the bytes of the client data. Undefined: they are what was asked. */
export function clientDataFlaw(
  json: Buffer,
  type: 'webauthn.get' | 'webauthn.create',
  { challenge, origin }: Asked,
): PasskeyFlaw | undefined {
  const said = readObject(json)
  if (said?.['type'] !== type || typeof said['challenge'] !== 'string') return 'form'
  const answered = bytesOf(said['challenge'])
  if (!answered || answered.length !== challenge.length || !timingSafeEqual(answered, challenge)) return 'challenge'
  // A page of another origin that holds ours in a frame could show the person something else.
  if (said['origin'] !== origin || said['crossOrigin'] === true || said['topOrigin'] !== undefined) return 'origin'
  return undefined
}

/** The bytes of a base64url text; undefined if bytes have another text than this one. */
export function bytesOf(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}
