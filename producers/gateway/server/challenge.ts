// `WWW-Authenticate`: the credentials that are accepted, and what is wrong with a Bearer token that was sent (RFC 6750
// section 3). It says only what the sender can see in the token itself, and nothing about users, keys or signatures.
import { TOKEN_FLAWS } from '../../../src/errors.ts'
import type { Decline } from '../error-bodies.ts'

const BASIC = 'Basic realm="tokenmill", charset="UTF-8"'
const BEARER = 'Bearer realm="tokenmill"'

/** One header field per challenge: many clients misread several challenges in one field. */
export function challengesOf({ status, fields, flaws = [] }: Decline, authorization: string | undefined): string[] {
  if (status === 401) {
    if (flaws.length === 0) return [BASIC, BEARER]
    return [BASIC, bearerError('invalid_token', flaws.map(flaw => TOKEN_FLAWS[flaw]).join('; '))]
  }
  const lacksRole = status === 403 && fields.some(({ reason }) => reason === 'role_missing')
  if (!lacksRole || !/^bearer /i.test(authorization ?? '')) return []
  return [bearerError('insufficient_scope', 'the roles in the token, of those granted to the client, do not suffice')]
}

function bearerError(error: 'invalid_token' | 'insufficient_scope', description: string): string {
  return `${BEARER}, error="${error}", error_description="${description}"`
}
