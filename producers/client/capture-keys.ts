// Capture keys that a sender fetches, verified: the answer of GET /.well-known/capture-keys is believed only by the
// statements in it. How the answer was fetched doesn't matter.
import { z } from 'zod'
import type { Clock } from '../../src/clock.ts'
import { ConfigError } from '../../src/config.ts'
import { alias } from '../../src/job/envelope/text.ts'
import { absentPackage } from '../../src/missing-package.ts'
import {
  type CaptureTrust,
  type PublicCaptureKey,
  readPublicCaptureKey,
  verifyCaptureKey,
} from '../../src/vault/capture/encrypt.ts'
import { type KnownKeys, learnKeys } from '../../src/vault/key-statement.ts'
import type { Credentials } from './client-file.ts'
import type { TrustedKeys } from './trusted-keys.ts'

/** Unknown members of keys are ignored, as RFC 7517 requires. */
const CaptureKeyDocument = z.object({
  keys: z.array(z.looseObject({ kid: alias(), statement: z.string().optional() })).max(64),
  openpgp: z.array(z.object({ alias: alias(), public_key: z.string(), statement: z.string().optional() })).max(64),
  new_keys: z.array(z.string()).max(64).optional(),
})

export interface VerifiedKeys {
  captureKeys: Credentials['captureKeys']
  /** Statements of signing keys that the document announces. */
  newKeys: readonly string[]
}

/**
 * The newest key of each form, verified. `now`: ms since the epoch. Throws `ConfigError` for a document of another form
 * or without keys. Also throws it if any key has no valid statement by a signing key that the credentials trust: then
 * no key is taken.
 */
export async function verifyCaptureKeys(
  document: unknown,
  { audience, entityId, installationKeys }: Pick<Credentials, 'audience' | 'entityId' | 'installationKeys'>,
  now: number,
): Promise<VerifiedKeys> {
  const parsed = CaptureKeyDocument.safeParse(document)
  if (!parsed.success) throw new ConfigError('these are no capture keys as /.well-known/capture-keys answers them')
  const { keys, openpgp, new_keys: newKeys = [] } = parsed.data
  if (keys.length + openpgp.length === 0)
    throw new ConfigError(
      `the answer has no capture key, so the former ones stay in use; ask for the keys of the entity ${entityId}`,
    )
  const known: KnownKeys = new Map(installationKeys)
  learnKeys(known, newKeys, audience)
  const trust = { audience, entityId, keys: known }
  const jwe = await Promise.all(
    keys.map(({ statement, ...jwk }) => verified({ alias: jwk.kid, text: JSON.stringify(jwk), statement }, trust, now)),
  )
  const pgp = await Promise.all(
    openpgp.map(({ alias, public_key: text, statement }) => verified({ alias, text, statement }, trust, now)),
  ).catch(error => {
    // Where the package for OpenPGP keys isn't installed, the other keys do.
    if (jwe.length === 0 || absentPackage(error) === undefined) throw error
    return []
  })
  return { captureKeys: { jwe: jwe[0], pgp: pgp[0] }, newKeys }
}

async function verified(
  { alias, text, statement }: { alias: string; text: string; statement: string | undefined },
  trust: CaptureTrust,
  now: number,
): Promise<PublicCaptureKey> {
  const key = await readPublicCaptureKey(alias, text)
  if (statement === undefined)
    throw new ConfigError(
      `the installation did not sign the public key ${alias}; nothing is encrypted to a key that is fetched and not signed`,
    )
  const { kid, until } = verifyCaptureKey(key, statement, trust)
  if (until < now)
    throw new ConfigError(
      `the statement about the public key ${alias} ended at ${new Date(until).toISOString()}; fetch the keys anew`,
    )
  return { ...key, kid }
}

/** The keys to which a client encrypts now. */
export interface CurrentKeys {
  current(): Credentials['captureKeys']
  /** Takes newer keys out of the answer of `GET /.well-known/capture-keys`. Rejects as `verifyCaptureKeys` does. */
  take(document: unknown): Promise<void>
}

export function openCaptureKeys(
  credentials: Omit<Credentials, 'signingKey'>,
  trusted: TrustedKeys,
  clock: Clock,
): CurrentKeys {
  let { captureKeys } = credentials
  return {
    current: () => captureKeys,
    async take(document) {
      const taken = await verifyCaptureKeys(document, { ...credentials, installationKeys: trusted.keys }, clock())
      await trusted.renew(taken.newKeys)
      // A document can lack the keys of a form without any signature, so the keys known before are kept then.
      const { jwe = captureKeys.jwe, pgp = captureKeys.pgp } = taken.captureKeys
      captureKeys = { jwe, pgp }
    },
  }
}
