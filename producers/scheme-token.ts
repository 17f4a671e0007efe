// Asks to provision, resume, suspend or delete the scheme token of a token. The answer says what the network did.
import type { z } from 'zod'
import type { Refusal } from '../src/errors.ts'
import { SchemeToken } from '../src/job/scheme-token.ts'
import { type Ask, check } from './ask.ts'

export type SchemeTokenRequest = z.input<typeof SchemeToken>

export function schemeToken(request: SchemeTokenRequest): Ask<'scheme-token'> | Refusal {
  return check('scheme-token', SchemeToken, request)
}
