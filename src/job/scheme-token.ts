// `scheme-token`: provisions, resumes, suspends or deletes the scheme token of one token.
import { z } from 'zod'
import { renderPatch } from '../token/render.ts'
import { RECORD_ROLES } from './choices.ts'
import { tokenId } from './envelope/text.ts'
import { kind } from './kind-entry.ts'
import { fromToken } from './stored-answer.ts'

export const SchemeToken = z.strictObject({ id: tokenId(), action: z.enum(['ACTIVATE', 'SUSPEND', 'DELETE']) })
export type SchemeToken = z.infer<typeof SchemeToken>

export const schemeTokenKind = kind({
  request: SchemeToken,
  description: 'Activates, suspends or deletes the scheme token of a token.',
  role: RECORD_ROLES['scheme-token'],
  urgent: true,
  sequenced: true,
  systemClients: ['gateway'],
  asksProvider: () => true,
  retell: fromToken(renderPatch),
  statusAt: 'operations',
})
