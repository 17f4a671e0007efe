// The text of the key of a migration's total, which the sender gets encrypted: 64 hex digits and a line feed.
// docs/sign-off/total.py reads it.
import { randomBytes } from 'node:crypto'
import { Secret } from '../../src/secret.ts'

const KEY_BYTES = 32

export function makeTotalKey(): Secret<Buffer> {
  return new Secret(randomBytes(KEY_BYTES))
}

export function totalKeyText(key: Secret<Buffer>): Secret {
  return new Secret(`${key.reveal().toString('hex')}\n`)
}
