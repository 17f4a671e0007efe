// The secrets of webhooks and the signatures made with them, by Standard Webhooks 1.0.0 (symmetric, `v1`). The store
// holds the secrets and decides which of them are valid.
import { createHmac, randomBytes } from 'node:crypto'
import { assert } from '../errors.ts'
import { Secret } from '../secret.ts'

const PREFIX = 'whsec_'
const BYTES = 32

/** Makes a secret in the form that receivers get: `whsec_` and base64 of 32 random bytes. */
export function makeWebhookSecret(): Secret {
  return new Secret(`${PREFIX}${randomBytes(BYTES).toString('base64')}`)
}

export interface Signed {
  /** The message's id. It must not hold a full stop, which separates it from what follows. */
  id: string
  /** Seconds since the epoch. */
  timestamp: number
  body: string
}

/** The value of `webhook-signature`: one signature per secret. A receiver needs to know only one of the secrets. */
export function signWebhook(secrets: readonly Secret[], { id, timestamp, body }: Signed): string {
  assert(secrets.length > 0 && /^[\w-]+$/.test(id), 'a webhook has a secret, and an id without a full stop')
  return secrets
    .map(secret => {
      const key = Buffer.from(secret.reveal().slice(PREFIX.length), 'base64')
      const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
      key.fill(0)
      return `v1,${signature}`
    })
    .join(' ')
}
