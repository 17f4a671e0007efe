// Runs one operator's act (pause, cancel, retry, discard, …) in one transaction: the act's function locks what it
// changes, decides, and the act's audit row is written with the change. Commands and pages put the result into words.
import { hash } from 'node:crypto'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import * as audits from '../store/access/audits.ts'
import type { Db, Store } from '../store/pool.ts'

/** Who acts. `machine`: an account of the host's operating system, without any proof; its `id` names the account. */
export interface Actor {
  kind: 'person' | 'client' | 'machine'
  id: string
  /** What the actor signed: a JWS that names the act; of a person the act's request with the answer of the passkey. */
  proof?: string
  /** The passkey of a person. */
  credential?: string
  /** A person of the embedded engine acted without a passkey. */
  unproved?: true
  /** The thumbprint (RFC 7638) of the key that made the proof. */
  key?: string
  /** The act's process has no keys of the vault, so nobody checked that tokenmill wrote the signer's row and key. */
  unchecked?: true
}

export interface By {
  actor: Actor
  reason: string | undefined
  /** A worker acts without an operator: see `Audit`. */
  isAutomatic?: boolean
}

/** What an act does, and to what. Example: action `batch.cancel`, subject = the batch's id. */
export interface Deed {
  action: string
  subject: string
}

/** The result of an act: what was done, or the word for the rule that refused it. Each act has its own words. */
export type ActResult<Done, Word extends string> = { done: Done } | { refused: Word }

/** What an act decided. `detail` goes into its audit row, beside actor and reason. */
export type Decided<Done, Word extends string> = (
  | { done: Done; detail: Record<string, unknown> }
  | { refused: Word }
) & {
  /** Whose object the act is about, if it is an entity's. */
  entityId?: string | null
}

/**
 * Runs `decide` in a transaction and writes the audit row. An act that is refused or fails leaves a row, too. Two sorts
 * of refusal leave no row: of a client over HTTP, because that isn't an operator's act, and of a worker that acts
 * without an operator, because it tries again each minute.
 */
export async function perform<Done, Word extends string>(
  store: Store,
  deed: Deed,
  by: By,
  decide: (db: Db) => Promise<Decided<Done, Word>>,
): Promise<ActResult<Done, Word>> {
  let whose: string | null | undefined
  const result = await store
    .transaction(async (db): Promise<ActResult<Done, Word>> => {
      const decided = await decide(db)
      whose = decided.entityId
      if ('refused' in decided) return { refused: decided.refused }
      await audits.insert(db, { ...auditOf(deed, by, decided.detail), entityId: whose })
      return { done: decided.done }
    })
    .catch(async error => {
      await recordEnd(store, auditOf(deed, by), error)
      throw error
    })
  const isOperator = (by.actor.kind !== 'client' || by.actor.proof !== undefined) && !by.isAutomatic
  if ('refused' in result && isOperator) await recordRefusal(store, deed, by, { why: result.refused, entityId: whose })
  return result
}

/**
 * As `perform`, for a caller that has begun the transaction and commits a refusal, too. `auditId`: the audit row, also of a
 * refusal.
 */
export async function performIn<Done, Word extends string>(
  db: Db,
  deed: Deed,
  by: By,
  decide: () => Promise<Decided<Done, Word>>,
): Promise<ActResult<Done, Word> & { auditId: number }> {
  const decided = await decide()
  if ('refused' in decided) {
    const { refused, entityId } = decided
    return { refused, auditId: await recordRefusal(db, deed, by, { why: refused, entityId }) }
  }
  const { done, detail, entityId } = decided
  return { done, auditId: await audits.insert(db, { ...auditOf(deed, by, detail), entityId }) }
}

/** Records acts of one action on many subjects, in the transaction that decided them; returns the id of each one's audit row. */
export function recordAll(
  db: Db,
  { action, by }: { action: string; by: By },
  subjects: readonly { subject: string; detail: Record<string, unknown> }[],
): Promise<ReadonlyMap<string, number>> {
  const rows = subjects.map(({ subject, detail }) => auditOf({ action, subject }, by, detail))
  return audits.insertAll(db, { actor: `${by.actor.kind}:${by.actor.id}`, action, rows })
}

/** Records that a rule refused the act: `why`, a word. Returns the id of the audit row. */
export function recordRefusal(
  db: Db,
  deed: Deed,
  by: By,
  { why, entityId }: { why: string; entityId?: string | null | undefined },
): Promise<number> {
  return audits.insert(db, { ...auditOf(deed, by, { why }), outcome: 'refused', entityId })
}

function auditOf(
  { action, subject }: Deed,
  { actor, reason, isAutomatic }: By,
  detail: Record<string, unknown> = {},
): audits.Audit {
  return {
    isAutomatic,
    actor: `${actor.kind}:${actor.id}`,
    action,
    subject,
    detail: {
      ...detail,
      ...(reason && { reason }),
      ...(actor.proof && { proof: actor.proof }),
      ...(actor.credential && { credential: actor.credential, proof_sha256: hash('sha256', actor.proof ?? '') }),
      ...(actor.unproved && { unproved: true }),
      ...(actor.unchecked && { unchecked: true }),
    },
  }
}

/** Records an act that threw `error`: as refused for a `ConfigError`, else as failed. It doesn't throw. */
export async function recordEnd(db: Db, audit: audits.Audit, error: unknown): Promise<void> {
  const isRefused = error instanceof ConfigError
  const why = isRefused ? error.message : error instanceof Fault ? error.code : nameOf(error)
  const ended = { ...audit, outcome: isRefused ? ('refused' as const) : ('failed' as const) }
  await audits.insert(db, { ...ended, detail: { ...audit.detail, why } }).catch(() => {})
}

/** The name of its class: the message of a foreign error may quote what it was given. */
function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown'
}
