// The table of all kinds of job. A kind is one word: the name of its queue, its jobs and its files. Its row holds what
// producers and workers must know of the kind. A kind without a field or a handler doesn't compile. The handlers in
// workers/ do the work.
import type { z } from 'zod'
import { CORE_KINDS } from './core-kinds.ts'
import type { KindEntry } from './kind-entry.ts'
import { reportKind } from './report.ts'
import { schemeTokenKind } from './scheme-token.ts'
import { actKind } from './system/act.ts'
import { manifestTotalKind } from './system/manifest-total.ts'
import { webhookKind } from './system/webhook.ts'
import { isSystemClient } from './system-clients.ts'
import { transactionBatchKind } from './transaction-batch.ts'

export { RECORD_KINDS, type RecordKind, ROLES, type Role } from './choices.ts'
export type { KindEntry } from './kind-entry.ts'

export const CATALOGUE = {
  'token-create': CORE_KINDS['token-create'],
  'token-update': CORE_KINDS['token-update'],
  'token-lifecycle': CORE_KINDS['token-lifecycle'],
  'scheme-token': schemeTokenKind,
  reference: CORE_KINDS.reference,
  'token-batch': CORE_KINDS['token-batch'],
  'transaction-batch': transactionBatchKind,
  report: reportKind,
  reversal: CORE_KINDS.reversal,
  webhook: webhookKind,
  'manifest-total': manifestTotalKind,
  act: actKind,
} as const satisfies Record<keyof typeof CORE_KINDS, KindEntry> & Record<string, KindEntry>

export type Kind = keyof typeof CATALOGUE
export const KINDS = Object.keys(CATALOGUE) as Kind[]

export function isKind(word: unknown): word is Kind {
  return typeof word === 'string' && Object.hasOwn(CATALOGUE, word)
}

/** The schema of a request of `kind` sent by the client `iss`. */
export function requestOf(kind: Kind, iss: string): z.ZodType {
  const { request, requestFrom }: KindEntry = CATALOGUE[kind]
  return (isSystemClient(iss) ? requestFrom[iss] : undefined) ?? request
}

export const FAILED_QUEUE = (kind: Kind): string => `failed-${kind}`

/** The results queue of a client: `results-<client id>` or `results-<client id>-<reply_to>`. */
export function resultsQueue(clientId: string, replyTo?: string | null): string {
  return replyTo ? `results-${clientId}-${replyTo}` : `results-${clientId}`
}
