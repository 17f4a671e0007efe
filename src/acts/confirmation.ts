// The second operator. Destroying a data key, and replacing or forgetting a key-encryption key, are done by two people:
// one client asks, another client with another key confirms within a day, and then the first one runs the command
// again. A confirmation holds for one act. Its row counts only with a code under the vault's key `grant`, and only if
// the audit since then is whole and shows no use: whoever owns the database can put a row back, but can't take a number
// out of the audit.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { numberAll } from '../audit/numbers.ts'
import { lookSince } from '../audit/since.ts'
import { ConfigError } from '../config.ts'
import * as auditChain from '../store/access/audit-chain.ts'
import * as audits from '../store/access/audits.ts'
import * as confirmations from '../store/access/confirmations.ts'
import type { Db, Store } from '../store/pool.ts'
import { readClock } from '../store/server.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import { type Actor, type ActResult, type By, type Deed, perform } from './act.ts'

export const CONFIRM = 'confirmation.confirm'
const ASK = 'confirmation.ask'
const USE = 'confirmation.use'
const CONFIRM_MS = 24 * 3_600_000
const ID_BYTES = 5

type Ring = Pick<KeyRing, 'grantMac' | 'grantMacBy' | 'auditMac' | 'auditMacBy'>

/**
 * Uses up the confirmation of an act, in the act's transaction; undefined if there is none. `detail` goes into the act's
 * audit row.
 */
export type UseConfirmation = (db: Db) => Promise<{ detail: Record<string, unknown> } | undefined>

/** For the embedded engine, which one person runs alone: no confirmation is needed. */
export const NONE_NEEDED: UseConfirmation = async () => ({ detail: {} })

/** An operator who has signed. */
export type Signer = Actor & { key: string }

export function isSigner(actor: Actor): actor is Signer {
  return actor.kind === 'client' && actor.key !== undefined
}

function textOf(row: confirmations.Confirmation): string {
  const { id, action, subject, askedBy, askedKey, askedAt, expiresAt, confirmedBy, confirmedKey, confirmedAt } = row
  const asked = [id, action, subject, askedBy, askedKey, askedAt, expiresAt]
  const confirmed = [confirmedBy, confirmedKey, confirmedAt, row.auditSeq, row.auditHash?.toString('hex') ?? null]
  return JSON.stringify(['confirmation', ...asked, ...confirmed, row.usedAt])
}

function codeOf(ring: Ring, row: confirmations.Confirmation): { mac: Buffer; macVersion: number } {
  const { mac, keyVersion } = ring.grantMac(textOf(row))
  return { mac, macVersion: keyVersion }
}

/** Whether tokenmill wrote the row. */
function isCoded(ring: Pick<Ring, 'grantMacBy'>, row: confirmations.CodedConfirmation): boolean {
  const right = ring.grantMacBy(textOf(row), row.macVersion)
  return right !== undefined && right.length === row.mac.length && timingSafeEqual(right, row.mac)
}

async function lockValid(db: Db, ring: Ring, deed: Deed, { id }: Signer): Promise<confirmations.CodedConfirmation[]> {
  const { action, subject } = deed
  const rows = await confirmations.lockAsked(db, { action, subject, askedBy: id })
  const valid: confirmations.CodedConfirmation[] = []
  for (const row of rows)
    if (!row.isExpired && isCoded(ring, row) && (await findUse(db, ring, row)) === 'none') valid.push(row)
  return valid
}

/** Whether the audit says that it was used, since it was confirmed. */
async function findUse(db: Db, ring: Ring, row: confirmations.Confirmation): ReturnType<typeof lookSince> {
  const { id, auditSeq: seq, auditHash: hash } = row
  if (seq === null || hash === null) return 'none'
  return lookSince(db, ring, { seq, hash }, ({ action, subject }) => action === USE && subject === id)
}

/** Records the use and numbers its row, which nobody can remove unseen from then on. The caller has locked the chain. */
async function recordUse(db: Db, ring: Ring, used: confirmations.Confirmation): Promise<void> {
  const { id, action, subject, askedBy } = used
  const { seq, hash } = await auditChain.find(db)
  await audits.insert(db, {
    actor: `client:${askedBy}`,
    action: USE,
    subject: id,
    detail: { act: action, of: subject },
  })
  await numberAll(db, { seq, hash }, ring)
  if ((await findUse(db, ring, { ...used, auditSeq: seq, auditHash: hash })) !== 'found')
    throw new ConfigError(
      'DATABASE_URL: the database does not keep the audit row of a confirmation, so nothing was done: look for a trigger or a rule on the schema tokenmill that tokenmill did not make, and remove it',
    )
}

/** For the act that `asker` runs: uses up a confirmation by another operator. */
export function confirmationOf(ring: Ring, deed: Deed, asker: Signer): UseConfirmation {
  return async db => {
    // With this lock no other process can use the confirmation or number a row between the check and this use.
    await auditChain.lock(db)
    const confirmed = (await lockValid(db, ring, deed, asker)).find(row => row.confirmedBy !== null)
    if (!confirmed) return undefined
    const used = { ...confirmed, usedAt: await readClock(db) }
    await confirmations.use(db, used, codeOf(ring, used))
    await recordUse(db, ring, used)
    return { detail: { confirmation: confirmed.id, confirmed_by: confirmed.confirmedBy } }
  }
}

/** Whether `confirmationOf` would find one now. */
export function isConfirmed(store: Store, ring: Ring, deed: Deed, asker: Signer): Promise<boolean> {
  return store.transaction(async db =>
    (await lockValid(db, ring, deed, asker)).some(({ confirmedBy }) => confirmedBy !== null),
  )
}

/** Asks for a confirmation. One that waits already is returned in place of another. */
export function askConfirmation(
  { store, ring }: { store: Store; ring: Ring },
  deed: Deed,
  { actor, reason }: { actor: Signer; reason: string | undefined },
): Promise<confirmations.Confirmation> {
  return store.transaction(async db => {
    const [waiting] = await lockValid(db, ring, deed, actor)
    if (waiting) return waiting
    const askedAt = await readClock(db)
    const asked: confirmations.Confirmation = {
      id: randomBytes(ID_BYTES).toString('hex'),
      action: deed.action,
      subject: deed.subject,
      askedBy: actor.id,
      askedKey: actor.key,
      askedAt,
      expiresAt: askedAt + CONFIRM_MS,
      confirmedBy: null,
      confirmedKey: null,
      confirmedAt: null,
      auditSeq: null,
      auditHash: null,
      usedAt: null,
    }
    await confirmations.insert(db, asked, codeOf(ring, asked))
    const detail = { act: deed.action, of: deed.subject, until: new Date(asked.expiresAt).toISOString() }
    const by = { ...(reason && { reason }), ...(actor.proof && { proof: actor.proof }) }
    const row = { actor: `${actor.kind}:${actor.id}`, action: ASK, subject: asked.id, detail: { ...detail, ...by } }
    await audits.insert(db, row)
    return asked
  })
}

export type ConfirmRefusal = 'unknown' | 'expired' | 'used' | 'confirmed' | 'same_client' | 'same_key'

/** Why the first operator does it, as its request in the audit says; undefined if they gave no reason. */
export function findReason(db: Db, id: string): Promise<string | undefined> {
  return audits.findReason(db, ASK, id)
}

/** Confirms as another operator, with another key. A row without its code is `unknown`. */
export function confirmAct(
  { store, ring }: { store: Store; ring: Ring },
  id: string,
  by: By & { actor: Signer },
): Promise<ActResult<confirmations.Confirmation, ConfirmRefusal>> {
  return perform<confirmations.Confirmation, ConfirmRefusal>(store, { action: CONFIRM, subject: id }, by, async db => {
    const asked = await confirmations.lock(db, id)
    if (!asked || !isCoded(ring, asked)) return { refused: 'unknown' }
    const refused = refusalOf(asked, by.actor)
    if (refused) return { refused }
    const confirmedAt = await readClock(db)
    const { seq: auditSeq, hash: auditHash } = await auditChain.find(db)
    const { id: confirmedBy, key: confirmedKey } = by.actor
    const confirmed = { ...asked, confirmedBy, confirmedKey, confirmedAt, auditSeq, auditHash }
    await confirmations.confirm(db, confirmed, codeOf(ring, confirmed))
    return { done: confirmed, detail: { act: asked.action, of: asked.subject, asked_by: asked.askedBy } }
  })
}

function refusalOf(asked: confirmations.CodedConfirmation, second: Signer): ConfirmRefusal | undefined {
  if (asked.usedAt !== null) return 'used'
  if (asked.isExpired) return 'expired'
  if (asked.confirmedBy !== null) return 'confirmed'
  if (asked.askedBy === second.id) return 'same_client'
  return asked.askedKey === second.key ? 'same_key' : undefined
}
