// Every kind of job there is: one word that is queue name, job name and file name alike, and what both sides must know
// of it. A kind that leaves a field out, or has no handler, doesn't compile. How a kind is worked is its handler's.
import type { z } from 'zod'
import { renderPatch, renderPut } from '../token/render.ts'
import type { RecordKind, Role } from './choices.ts'
import { Report } from './report.ts'
import { Reversal, retellReversal } from './reversal.ts'
import { SchemeToken } from './scheme-token.ts'
import { fromToken, type Retelling } from './stored-answer.ts'
import { recordsInBlock, TokenBatch } from './token-batch.ts'
import { asksThirdParty, TokenCreate } from './token-create.ts'
import { retellLifecycle, TokenExpiry, TokenLifecycle } from './token-lifecycle.ts'
import { hasSchemeAction, TokenUpdate } from './token-update.ts'
import { linesIn, TransactionBatch } from './transaction-batch.ts'

export { RECORD_KINDS, type RecordKind, ROLES, type Role } from './choices.ts'

/** A request as it was sent, before or beside its schema. */
type Sent = Record<string, unknown>

export interface KindEntry {
  request: z.ZodType
  /** What a request looks like from a system client, where that is something else. */
  requestFrom: Record<string, z.ZodType>
  /** What a job of the kind does: one sentence of the documents. */
  description: string
  /** The role that the job's effective roles must hold; `null`: decided by the request alone. */
  role: Role | null
  /** Roles that this request needs beside that. */
  moreRoles: (request: Sent) => readonly Role[]
  /** Bulk kinds never share a process with interactive ones. */
  bulk: boolean
  /** `sequence` is allowed: the kind changes a token that exists. */
  sequenced: boolean
  /** Only system clients may send it. */
  systemOnly: boolean
  /** It is worked for a client that was revoked, too: what the client did before can still be taken back. */
  servesRevoked: boolean
  /** The job carries its records as an encrypted block. */
  hasBlock: boolean
  /** How many records a chunk states, whatever was sent; `null`: a job of the kind is no chunk. */
  recordsIn: ((request: Sent) => unknown) | null
  /** This request asks a network or a third party: what they did in vain is undone. A chunk sees to that itself. */
  asksProvider: (request: Sent) => boolean
  /** How the answer of one that succeeded is told again. */
  retell: Retelling
}

const none = () => []
const never = () => false
const always = () => true

export const CATALOGUE = {
  'token-create': {
    request: TokenCreate,
    requestFrom: {},
    description: 'Creates a token of a card, or updates the one that the card has in its scope.',
    role: 'TOKEN_WRITE',
    moreRoles: none,
    bulk: false,
    sequenced: false,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: asksThirdParty,
    retell: fromToken(renderPut),
  },
  'token-update': {
    request: TokenUpdate,
    requestFrom: {},
    description: 'Changes the data of a token, or puts another card behind it.',
    role: 'TOKEN_WRITE',
    moreRoles: request => (hasSchemeAction(request) ? ['SCHEME_TOKEN'] : []),
    bulk: false,
    sequenced: true,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: hasSchemeAction,
    retell: fromToken(renderPatch),
  },
  'token-lifecycle': {
    request: TokenLifecycle,
    // The scheduler's life cycle of a token is its end by date.
    requestFrom: { scheduler: TokenExpiry },
    description: 'Suspends, activates or deletes a token.',
    role: 'TOKEN_LIFECYCLE',
    moreRoles: none,
    bulk: false,
    sequenced: true,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: retellLifecycle,
  },
  'scheme-token': {
    request: SchemeToken,
    requestFrom: {},
    description: 'Activates, suspends or deletes the scheme token of a token.',
    role: 'SCHEME_TOKEN',
    moreRoles: none,
    bulk: false,
    sequenced: true,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: always,
    retell: fromToken(renderPatch),
  },
  'token-batch': {
    request: TokenBatch,
    requestFrom: {},
    description: 'One chunk of a batch; its records travel in the block of the job.',
    role: null,
    moreRoles: rolesOfRecords,
    bulk: true,
    sequenced: false,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: true,
    recordsIn: recordsInBlock,
    asksProvider: never,
    retell: { from: 'outcomes', tells: 'all' },
  },
  'transaction-batch': {
    request: TransactionBatch,
    requestFrom: {},
    description: 'One chunk of ledger transactions.',
    role: 'LEDGER_WRITE',
    moreRoles: none,
    bulk: true,
    sequenced: false,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: linesIn,
    asksProvider: never,
    // Of a line that is in the ledger there is nothing else to say.
    retell: { from: 'outcomes', tells: 'without-effect' },
  },
  report: {
    request: Report,
    requestFrom: {},
    description: 'Requests a report.',
    role: 'REPORT_REQUEST',
    moreRoles: none,
    bulk: true,
    sequenced: false,
    systemOnly: false,
    servesRevoked: false,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: { from: 'handler' },
  },
  reversal: {
    request: Reversal,
    requestFrom: {},
    description: 'Undoes what one envelope did. System clients only.',
    role: null,
    moreRoles: none,
    bulk: false,
    sequenced: false,
    systemOnly: true,
    servesRevoked: true,
    hasBlock: false,
    recordsIn: null,
    asksProvider: never,
    retell: retellReversal,
  },
} as const satisfies Record<string, KindEntry>

export type Kind = keyof typeof CATALOGUE
export const KINDS = Object.keys(CATALOGUE) as Kind[]

export function isKind(word: unknown): word is Kind {
  return typeof word === 'string' && Object.hasOwn(CATALOGUE, word)
}

/** A batch needs what each of its records would; one that predicts is an answer about tokens, too. */
function rolesOfRecords({ record_kind, dry_run }: Sent): Role[] {
  const { role } = CATALOGUE[record_kind as RecordKind]
  return dry_run === true ? [role, 'TOKEN_READ'] : [role]
}

/** What each system client may sign; every other client may sign all kinds but the `systemOnly` ones. */
export const SYSTEM_CLIENTS = {
  gateway: ['token-create', 'token-update', 'token-lifecycle', 'scheme-token', 'token-batch', 'report', 'reversal'],
  scheduler: ['report', 'token-lifecycle'],
  worker: ['reversal'],
} as const satisfies Record<string, readonly Kind[]>
export type SystemClient = keyof typeof SYSTEM_CLIENTS

export function isSystemClient(clientId: string): clientId is SystemClient {
  return Object.hasOwn(SYSTEM_CLIENTS, clientId)
}

/** What a request of this kind looks like from this sender. */
export function requestOf(kind: Kind, iss: string): z.ZodType {
  const { request, requestFrom }: KindEntry = CATALOGUE[kind]
  return (isSystemClient(iss) ? requestFrom[iss] : undefined) ?? request
}

/** Whose results queue an answer goes to: what a system client asked on somebody's behalf is answered to itself. */
export function addresseeOf({ iss, clientId }: { iss: string; clientId: string }): string {
  return isSystemClient(iss) ? iss : clientId
}

export const FAILED_QUEUE = (kind: Kind): string => `failed-${kind}`

/** The queue on which a client finds its answers: `results-<client id>` or `results-<client id>-<reply_to>`. */
export function resultsQueue(clientId: string, replyTo?: string | null): string {
  return replyTo ? `results-${clientId}-${replyTo}` : `results-${clientId}`
}
