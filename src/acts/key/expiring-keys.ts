// When each key of the installation should be replaced, and the events about that: each subscribed client of an operator gets
// one some days before the date and one at the date, however many processes look.
import * as dataKeys from '../../store/access/data-keys.ts'
import * as keks from '../../store/access/keks.ts'
import * as keyNotices from '../../store/access/key-notices.ts'
import * as signingKeys from '../../store/access/signing-keys.ts'
import type { Coder } from '../../store/codes.ts'
import * as endpoints from '../../store/event/endpoints.ts'
import { tellAll } from '../../store/event/tell.ts'
import type { Db, Store } from '../../store/pool.ts'
import { KEK_DAYS, NOTICE_DAYS, replaceBy, SIGNING_DAYS } from '../../vault/ring/cryptoperiod.ts'
import { PURPOSES } from '../../vault/ring/key-ring.ts'

export interface KeyDate {
  /** `PURPOSE/VERSION`, the id of a key-encryption key, or `signing/KID`. */
  key: string
  kind: 'data-key' | 'kek' | 'signing-key'
  /** ms since the epoch. */
  replaceBy: number
}

export interface ExpiringKey extends KeyDate {
  stage: keyNotices.KeyStage
}

const DAY_MS = 86_400_000
/** The revision of the event at each stage. For each key, readers keep the event with the highest revision. */
const REVISIONS: Record<keyNotices.KeyStage, number> = { SOON: 1, OVER: 2 }

/** The keys whose date is near or has come, in the order of their names. `now`: ms since the epoch. */
export async function listExpiring(db: Db, now: number): Promise<ExpiringKey[]> {
  const dates = [...(await listDataKeys(db)), ...(await listKeks(db)), ...(await listSigning(db))]
  return dates
    .filter(date => now >= date.replaceBy - NOTICE_DAYS * DAY_MS)
    .map(date => ({ ...date, stage: now >= date.replaceBy ? ('OVER' as const) : ('SOON' as const) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
}

/** Writes the events that weren't written before, if anybody is subscribed. Returns the keys that they are about. */
export async function tellExpiring(store: Store, coder: Coder, now: number): Promise<ExpiringKey[]> {
  const expiring = await listExpiring(store, now)
  if (expiring.length === 0) return []
  return store.transaction(async db => {
    const subscribed = await endpoints.findSubscribedByRole(db, 'ADMIN', 'key.expiring')
    // Without this, a client that subscribes later would never get the event: a notice is kept for each key and stage.
    if (subscribed.length === 0) return []
    const noted = await keyNotices.insertNew(db, expiring)
    const fresh = expiring.filter(({ key }) => noted.some(notice => notice.key === key))
    const clientIds = [...new Set(subscribed.map(({ clientId }) => clientId))]
    await tellAll(
      db,
      coder,
      fresh.flatMap(key => clientIds.map(clientId => eventOf(key, clientId))),
      subscribed,
    )
    return fresh
  })
}

function eventOf({ key, kind, replaceBy: at, stage }: ExpiringKey, clientId: string) {
  const data = { key, kind, replace_by: new Date(at).toISOString(), stage }
  return { type: 'key.expiring' as const, clientId, subject: key, revision: REVISIONS[stage], data }
}

async function listDataKeys(db: Db): Promise<KeyDate[]> {
  return (await dataKeys.list(db)).flatMap(({ purpose: name, version, state, activatedAt }) => {
    const purpose = PURPOSES.find(known => known === name)
    if (!purpose || state !== 'ACTIVE' || activatedAt === null) return []
    return [{ key: `${purpose}/${version}`, kind: 'data-key' as const, replaceBy: replaceBy(purpose, activatedAt) }]
  })
}

async function listKeks(db: Db): Promise<KeyDate[]> {
  const active = (await keks.list(db)).filter(({ state }) => state === 'ACTIVE')
  return active.map(({ kekId, createdAt }) => ({
    key: kekId,
    kind: 'kek' as const,
    replaceBy: createdAt + KEK_DAYS * DAY_MS,
  }))
}

/** None while a next key is announced, because that key begins to sign without an operator. */
async function listSigning(db: Db): Promise<KeyDate[]> {
  const { active, announced } = await signingKeys.findState(db, 0)
  if (!active || announced) return []
  const { kid, activeAt } = active
  return [{ key: `signing/${kid}`, kind: 'signing-key', replaceBy: activeAt + SIGNING_DAYS * DAY_MS }]
}
