// The table of all kinds of job. A kind is one word: the name of its queue, its jobs and its files. Its row holds what
// producers and workers must know of the kind. A kind without a field or a handler doesn't compile. The handlers in
// workers/ do the work.
import type { z } from 'zod'
import { renderPatch, renderPut } from '../token/render.ts'
import { fromToken } from './answer/stored-answer.ts'
import type { KindEntry } from './kind-entry.ts'
import { Reference } from './reference.ts'
import { Report } from './report.ts'
import { SchemeToken } from './scheme-token.ts'
import { Act } from './system/act.ts'
import { ManifestTotal, retellManifestTotal } from './system/manifest-total.ts'
import { Reversal, retellReversal } from './system/reversal.ts'
import { retellWebhook, Webhook } from './system/webhook.ts'
import { BATCH_ROLES, RECORD_ROLES, recordsInBlock, TokenBatch } from './token-batch.ts'
import { asksThirdParty, TokenCreate } from './token-create.ts'
import { retellLifecycle, TokenExpiry, TokenLifecycle } from './token-lifecycle.ts'
import { hasSchemeAction, TokenUpdate } from './token-update.ts'
import { linesIn, TransactionBatch } from './transaction-batch.ts'

export { RECORD_KINDS, type RecordKind, ROLES, type Role } from './choices.ts'
export type { KindEntry } from './kind-entry.ts'

const never = () => false
const always = () => true

export const CATALOGUE = {
  'token-create': {
    request: TokenCreate,
    requestFrom: {},
    description: 'Creates a token of a card, or updates the one that the card has in its scope.',
    role: RECORD_ROLES['token-create'],
    memberRoles: [],
    bulk: false,
    urgent: true,
    sequenced: false,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: asksThirdParty,
    retell: fromToken(renderPut),
    statusAt: 'operations',
  },
  'token-update': {
    request: TokenUpdate,
    requestFrom: {},
    description: 'Changes the data of a token, or puts another card behind it.',
    role: RECORD_ROLES['token-update'],
    memberRoles: [{ role: 'SCHEME_TOKEN', member: 'scheme_token_action', asks: hasSchemeAction }],
    bulk: false,
    urgent: true,
    sequenced: true,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: hasSchemeAction,
    retell: fromToken(renderPatch),
    statusAt: 'operations',
  },
  'token-lifecycle': {
    request: TokenLifecycle,
    // The scheduler asks for the expiry of tokens whose date has passed.
    requestFrom: { scheduler: TokenExpiry },
    description: 'Suspends, activates or deletes a token.',
    role: RECORD_ROLES['token-lifecycle'],
    memberRoles: [],
    bulk: false,
    urgent: true,
    sequenced: true,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: retellLifecycle,
    statusAt: 'operations',
  },
  'scheme-token': {
    request: SchemeToken,
    requestFrom: {},
    description: 'Activates, suspends or deletes the scheme token of a token.',
    role: RECORD_ROLES['scheme-token'],
    memberRoles: [],
    bulk: false,
    urgent: true,
    sequenced: true,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: always,
    retell: fromToken(renderPatch),
    statusAt: 'operations',
  },
  reference: {
    request: Reference,
    requestFrom: {},
    description: "Releases an owner of a token, who is named by a provider's ids.",
    role: RECORD_ROLES.reference,
    memberRoles: [],
    bulk: false,
    urgent: true,
    // The request names no token, so it has no `sequence`.
    sequenced: false,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: { from: 'handler' },
    statusAt: null,
  },
  'token-batch': {
    request: TokenBatch,
    requestFrom: {},
    description: 'One chunk of a batch; its records travel in the block of the job.',
    role: null,
    memberRoles: BATCH_ROLES,
    bulk: true,
    urgent: false,
    sequenced: false,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: true,
    recordsIn: recordsInBlock,
    asksProvider: never,
    retell: { from: 'outcomes', tells: 'all' },
    statusAt: 'batches',
  },
  'transaction-batch': {
    request: TransactionBatch,
    requestFrom: {},
    description: 'One chunk of ledger transactions.',
    role: 'LEDGER_WRITE',
    memberRoles: [],
    bulk: true,
    urgent: false,
    sequenced: false,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: linesIn,
    asksProvider: never,
    // A repeat lists only the lines without effect: a line that is in the ledger needs no further answer.
    retell: { from: 'outcomes', tells: 'without-effect' },
    statusAt: null,
  },
  report: {
    request: Report,
    requestFrom: {},
    description: 'Requests a report.',
    role: 'REPORT_REQUEST',
    memberRoles: [],
    bulk: true,
    urgent: false,
    sequenced: false,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: { from: 'handler' },
    statusAt: 'reports',
  },
  reversal: {
    request: Reversal,
    requestFrom: {},
    description: 'Undoes what one envelope did. System clients only.',
    role: null,
    memberRoles: [],
    bulk: false,
    urgent: true,
    sequenced: false,
    systemOnly: true,
    servesRevoked: true,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: retellReversal,
    statusAt: null,
  },
  webhook: {
    request: Webhook,
    requestFrom: {},
    description: 'Delivers an event to the URL of a subscription, once. System clients only.',
    role: null,
    memberRoles: [],
    // The job waits for a receiver's server and needs little CPU, so the high concurrency of interactive kinds suits
    // it.
    bulk: false,
    urgent: false,
    sequenced: false,
    systemOnly: true,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: retellWebhook,
    statusAt: null,
  },
  'manifest-total': {
    request: ManifestTotal,
    requestFrom: {},
    description: 'Computes one part of the total of a migration. System clients only.',
    role: null,
    memberRoles: [],
    bulk: true,
    urgent: false,
    sequenced: false,
    systemOnly: true,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: retellManifestTotal,
    statusAt: null,
  },
  act: {
    request: Act,
    requestFrom: {},
    description: 'Does what a person decided in the console, who proves it with a passkey. System clients only.',
    role: null,
    memberRoles: [],
    bulk: false,
    urgent: true,
    sequenced: false,
    systemOnly: true,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: { from: 'handler' },
    statusAt: null,
  },
} as const satisfies Record<string, KindEntry>

export type Kind = keyof typeof CATALOGUE
export const KINDS = Object.keys(CATALOGUE) as Kind[]

export function isKind(word: unknown): word is Kind {
  return typeof word === 'string' && Object.hasOwn(CATALOGUE, word)
}

/** The kinds that each system client may sign. Every other client may sign all kinds that aren't `systemOnly`. */
export const SYSTEM_CLIENTS = {
  gateway: ['token-create', 'token-update', 'token-lifecycle', 'scheme-token', 'token-batch', 'report', 'reversal'],
  scheduler: ['report', 'token-lifecycle', 'webhook'],
  worker: ['reversal', 'manifest-total'],
  console: ['act'],
} as const satisfies Record<string, readonly Kind[]>
export type SystemClient = keyof typeof SYSTEM_CLIENTS

export function isSystemClient(clientId: string): clientId is SystemClient {
  return Object.hasOwn(SYSTEM_CLIENTS, clientId)
}

/** Whether the client may send a job for another one (claim `client_id`). The console acts for people, never for a client. */
export function actsForClients(iss: string): boolean {
  return isSystemClient(iss) && iss !== 'console'
}

/** The schema of a request of `kind` sent by the client `iss`. */
export function requestOf(kind: Kind, iss: string): z.ZodType {
  const { request, requestFrom }: KindEntry = CATALOGUE[kind]
  return (isSystemClient(iss) ? requestFrom[iss] : undefined) ?? request
}

/**
 * The client whose results queue gets the answer. A system client gets the answers to its own requests, also when it
 * acts for another client.
 */
export function addresseeOf({ iss, clientId }: { iss: string; clientId: string }): string {
  return isSystemClient(iss) ? iss : clientId
}

export const FAILED_QUEUE = (kind: Kind): string => `failed-${kind}`

/** The results queue of a client: `results-<client id>` or `results-<client id>-<reply_to>`. */
export function resultsQueue(clientId: string, replyTo?: string | null): string {
  return replyTo ? `results-${clientId}-${replyTo}` : `results-${clientId}`
}
