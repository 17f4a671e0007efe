// Computes the verifier that PostgreSQL stores for a password (SCRAM, RFC 5803), so that the password itself never
// appears in a statement, in the server's log, or in statements for a database administrator.
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import type { Secret } from '../../secret.ts'

const ITERATIONS = 4096

/** `password` must be ASCII: then SASLprep doesn't change it. */
export function scramVerifier(password: Secret, salt: Buffer = randomBytes(16)): string {
  const salted = pbkdf2Sync(password.reveal(), salt, ITERATIONS, 32, 'sha256')
  const keyOf = (name: string) => createHmac('sha256', salted).update(name).digest()
  const stored = createHash('sha256').update(keyOf('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${stored}:${keyOf('Server Key').toString('base64')}`
}
