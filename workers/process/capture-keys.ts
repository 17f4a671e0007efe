// Every worker process looks after capture keys: it signs the statements by which senders trust them, and replaces the
// keys of those entities for which an operator switched that on. The acts take locks, so that only one process does
// each.
import { hostname } from 'node:os'
import type { By } from '../../src/acts/act.ts'
import { IDLE_MS, retireKey, rotateLine, STATED, type Stating, state } from '../../src/acts/capture-keys.ts'
import { type DueLines, listDueLines } from '../../src/acts/capture-turning.ts'
import { isCaptureKeyGranted } from '../../src/acts/grants.ts'
import type { Clock } from '../../src/clock.ts'
import { describeError, type Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as turning from '../../src/store/capture/turning.ts'
import type { Coder } from '../../src/store/codes.ts'
import * as events from '../../src/store/event/events.ts'
import { tell } from '../../src/store/event/tell.ts'
import type { Store } from '../../src/store/pool.ts'
import { makeCaptureKey } from '../../src/vault/capture/capture-key.ts'
import type { PrivateHalves } from '../../src/vault/private-half.ts'

const LOOK_MS = 60_000
const SET = 100
const DAY_MS = 86_400_000
/** After this time clients are told again of a replaced key that is still in use. */
const TELL_MS = 7 * DAY_MS

export interface Tending {
  store: Store
  halves: PrivateHalves
  stating: () => Stating & { ring: Coder }
  clock: Clock
  log: Logger
}

/** Returns a function that ends it. */
export function watchCaptureKeys(tending: Tending): () => Promise<void> {
  return every(LOOK_MS, () => tendCaptureKeys(tending), { log: tending.log, firstMs: 0 })
}

export async function tendCaptureKeys(tending: Tending): Promise<void> {
  const { store, stating, clock, log } = tending
  await stateKeys(tending)
  const { ring } = stating()
  const due = await listDueLines(store, clock(), key => isOurs(key, ring, log))
  if (due.unwatched.length > 0) await turning.restart(store, due.unwatched, clock())
  await turn(tending, due)
  for (const key of due.inUse) await alone(captureKeys.captureKeyName(key), log, () => tellInUse(tending, key))
}

/** Logs an error and goes on with the next key. */
async function alone(key: string, log: Logger, work: () => Promise<void>): Promise<void> {
  await work().catch(error => log.error({ key, error: describeError(error) }, 'a capture key was not looked after'))
}

function isOurs(key: captureKeys.CaptureKeyInfo, ring: Stating['ring'], log: Logger): boolean {
  const name = captureKeys.captureKeyName(key)
  try {
    if (isCaptureKeyGranted(ring, key)) return true
    log.error({ key: name }, 'a capture key was not written by tokenmill, or was changed since: it is left alone')
  } catch (error) {
    // This process may lack the version of the key that made the code. A process that holds it looks after the capture
    // key.
    log.warn({ key: name, error: describeError(error) }, 'the code of a capture key cannot be checked here')
  }
  return false
}

/** Signs statements for keys that have none by the key that signs now, or one that ends soon. */
async function stateKeys({ store, stating, clock, log }: Tending): Promise<void> {
  const by = stating()
  const now = clock()
  const unstated = { signer: by.signing.kid, until: now + STATED.renewMs, limit: SET }
  let set: captureKeys.CaptureKeyInfo[]
  let after: string | null = null
  do {
    set = await captureKeys.listUnstated(store, { ...unstated, after })
    for (const key of set) {
      after = key.keyId
      if (!isOurs(key, by.ring, log)) continue
      await alone(captureKeys.captureKeyName(key), log, async () => {
        await state(store, by, key, now)
      })
    }
  } while (set.length === SET)
}

async function turn({ store, halves, stating, clock, log }: Tending, { rotate, retire }: DueLines): Promise<void> {
  const by: By = {
    actor: { kind: 'machine', id: `worker@${hostname()}` },
    reason: 'it turns by itself',
    isAutomatic: true,
  }
  const now = clock()
  const make = (type: captureKeys.CaptureKeyType, alias: string) => makeCaptureKey(type, alias, halves)
  for (const alias of rotate)
    await alone(alias, log, async () => {
      const ended = await rotateLine({ store, stating: stating(), make }, { alias, again: false }, by, now)
      if ('refused' in ended) log.warn({ alias, why: ended.refused }, 'a capture key is due, and could not be replaced')
      else if (ended.done.isNew) log.info({ alias, number: ended.done.key.number }, 'a capture key was replaced')
    })
  for (const { alias, number } of retire)
    await alone(captureKeys.captureKeyName({ alias, number }), log, async () => {
      const retiring = { alias, number, until: now, unlessUsedAfter: now - IDLE_MS }
      const ended = await retireKey(store, stating().ring, retiring, by, now)
      if ('done' in ended) log.info({ alias, number }, 'a capture key that nobody uses was retired')
    })
}

/** Tells the clients of the entity, once a week, that somebody still encrypts to a key that was replaced. */
async function tellInUse({ store, clock, stating }: Tending, key: captureKeys.CaptureKeyInfo): Promise<void> {
  const { keyId, alias, number, entityId, lastUsedAt } = key
  const subject = captureKeys.captureKeyName(key)
  const now = clock()
  const { ring } = stating()
  await store.transaction(async db => {
    if (!(await captureKeys.noteTold(db, keyId, { at: now, after: now - TELL_MS }))) return
    const concerned = (await clients.list(db)).filter(
      client => client.revokedAt === null && !client.system && client.entities.includes(entityId),
    )
    for (const { clientId } of concerned) {
      // Events are erased after some days, and a receiver drops a revision that it has had before.
      const revision = Math.max(await events.nextRevision(db, clientId, subject), Math.floor(now / DAY_MS))
      const data = { alias, number, last_used_at: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString() }
      await tell(db, ring, { type: 'capture-key.in-use', clientId, subject, revision, data })
    }
  })
}
