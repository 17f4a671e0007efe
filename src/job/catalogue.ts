// Every kind of job there is: one word that is queue name, job name and file name alike. A handler for each kind
// must exist, or the workers' table doesn't compile. It holds no logic.
import type { z } from 'zod'
import { Report } from './report.ts'
import { Reversal } from './reversal.ts'
import { SchemeToken } from './scheme-token.ts'
import { TokenBatch } from './token-batch.ts'
import { TokenCreate } from './token-create.ts'
import { TokenExpiry, TokenLifecycle } from './token-lifecycle.ts'
import { TokenUpdate } from './token-update.ts'
import { TransactionBatch } from './transaction-batch.ts'

export const ROLES = [
  'TOKEN_WRITE',
  'TOKEN_READ',
  'TOKEN_LIFECYCLE',
  'SCHEME_TOKEN',
  'LEDGER_WRITE',
  'REPORT_READ',
  'REPORT_REQUEST',
  'THREEDS',
  'ADMIN',
] as const
export type Role = (typeof ROLES)[number]

export const KINDS = [
  'token-create',
  'token-update',
  'token-lifecycle',
  'scheme-token',
  'token-batch',
  'transaction-batch',
  'report',
  'reversal',
] as const
export type Kind = (typeof KINDS)[number]

/** The kinds that a batch may hold, as `record_kind`. */
export const RECORD_KINDS = ['token-create', 'token-update', 'token-lifecycle', 'scheme-token'] as const
export type RecordKind = (typeof RECORD_KINDS)[number]

export interface KindEntry {
  request: z.ZodType
  /** The role the job's effective roles must hold; `null`: decided by the request (a batch needs its record kind's). */
  role: Role | null
  /** Bulk kinds never share a process with interactive ones. */
  bulk: boolean
  /** `sequence` is allowed: the kind changes a token that exists. */
  sequenced: boolean
  /** Only system clients may send it. */
  systemOnly: boolean
}

const entry = (request: z.ZodType, role: Role | null, flags: Partial<KindEntry> = {}): KindEntry => ({
  request,
  role,
  bulk: false,
  sequenced: false,
  systemOnly: false,
  ...flags,
})

export const CATALOGUE = {
  'token-create': entry(TokenCreate, 'TOKEN_WRITE'),
  'token-update': entry(TokenUpdate, 'TOKEN_WRITE', { sequenced: true }),
  'token-lifecycle': entry(TokenLifecycle, 'TOKEN_LIFECYCLE', { sequenced: true }),
  'scheme-token': entry(SchemeToken, 'SCHEME_TOKEN', { sequenced: true }),
  'token-batch': entry(TokenBatch, null, { bulk: true }),
  'transaction-batch': entry(TransactionBatch, 'LEDGER_WRITE', { bulk: true }),
  report: entry(Report, 'REPORT_REQUEST', { bulk: true }),
  reversal: entry(Reversal, null, { systemOnly: true }),
} as const satisfies Record<Kind, KindEntry>

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

/** What a request of this kind looks like from this sender: the scheduler's life cycle of a token is its end by date. */
export function requestOf(kind: Kind, iss: string): z.ZodType {
  return kind === 'token-lifecycle' && iss === 'scheduler' ? TokenExpiry : CATALOGUE[kind].request
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
