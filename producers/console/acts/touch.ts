// What a browser needs for the touch of a passkey that signs an act (`navigator.credentials.get`).
import { challengeOf } from '../../../src/vault/passkey/challenge.ts'
import type { ConsoleDeps } from '../deps.ts'
import { TOUCH_MS } from '../session/sign-in.ts'
import type { Unproved } from './request.ts'

/** For the touch of one of `known`. The challenge is the act that a worker will check. */
export function touchOf(
  { installationId, site }: Pick<ConsoleDeps, 'installationId' | 'site'>,
  request: Unproved,
  known: readonly string[],
): object {
  const challenge = challengeOf(request, installationId).toString('base64url')
  const asked = { challenge, rpId: site().rpId, userVerification: 'required', timeout: TOUCH_MS }
  return { ...asked, allowCredentials: known }
}
