// What happens to capture keys: one is made, a line gets a further one, one is retired, and the installation states what
// its keys are. Keys are made and opened elsewhere. A key is stated only if its row has a right code, else whoever owns
// the database could have a key of their own signed.
import { ConfigError } from '../config.ts'
import { assert } from '../errors.ts'
import type { InstallationKey } from '../job/answer/result.ts'
import * as captureKeys from '../store/access/capture-keys.ts'
import * as turning from '../store/capture/turning.ts'
import type { Db, Store } from '../store/pool.ts'
import { KEYS_MAX } from '../vault/capture/keys-max.ts'
import { kidOf, sealCaptureStatement } from '../vault/capture/statement.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import { type ActResult, type By, perform } from './act.ts'
import { grantCaptureKey, isCaptureKeyGranted, NEW_CAPTURE_KEY } from './grants.ts'

export const ROTATE_CAPTURE = 'capture-key.rotate'
export const RETIRE_CAPTURE = 'capture-key.retire'
export const TURN_CAPTURE = 'capture-key.turning'

const DAY_MS = 86_400_000

/** A former key that wasn't used for this long is retired; a key that was used is never retired automatically. */
export const IDLE_MS = 14 * DAY_MS

/** Workers sign a statement anew while it still holds for `renewMs`, so that readers always find one that does. */
export const STATED = { forMs: 30 * DAY_MS, renewMs: 20 * DAY_MS } as const

/** What states a key: the codes of rows, the key that signs results, the installation's name. */
export interface Stating {
  ring: Pick<KeyRing, 'grantMac' | 'grantMacBy'>
  signing: InstallationKey
  audience: string
}

type Ring = Stating['ring']

/** Inserts a key with its code and its statement. Undefined if its line has a key of this number. */
export async function insertKey(
  db: Db,
  stating: Stating,
  key: captureKeys.NewCaptureKey,
  now: number,
): Promise<captureKeys.CaptureKeyInfo | undefined> {
  const meant = { ...NEW_CAPTURE_KEY, ...key }
  if (!(await captureKeys.insert(db, meant))) return undefined
  await grantCaptureKey(db, stating.ring, meant)
  const inserted = (await captureKeys.findLine(db, key.alias)).find(({ number }) => number === meant.number)
  assert(inserted, 'it was just written')
  return state(db, stating, inserted, now)
}

/** Signs the statement about a key anew and stores it. Throws `ConfigError` for a row that tokenmill didn't write. */
export async function state(
  db: Db,
  { ring, signing, audience }: Stating,
  key: captureKeys.CaptureKeyInfo,
  now: number,
): Promise<captureKeys.CaptureKeyInfo> {
  assertGranted(ring, key)
  const { alias, entityId, publicKey, retiredAt } = key
  const until = Math.min(now + STATED.forMs, retiredAt ?? Number.POSITIVE_INFINITY)
  const stated = { alias, entityId, kid: await kidOf(publicKey), until }
  const statement = sealCaptureStatement({ audience, key: stated, now }, signing)
  const signed = { statement, statedBy: signing.kid, statedUntil: until }
  await captureKeys.setStatement(db, key.keyId, signed)
  return { ...key, ...signed }
}

function assertGranted(ring: Pick<Ring, 'grantMacBy'>, key: captureKeys.CaptureKeyInfo): void {
  if (isCaptureKeyGranted(ring, key)) return
  throw new ConfigError(
    `DATABASE_URL: the row of the capture key ${captureKeys.captureKeyName(key)} was not written by tokenmill, or was changed since, so nothing was changed: see \`tokenmill doctor\``,
  )
}

export type MakeKey = (type: captureKeys.CaptureKeyType, alias: string) => Promise<NewHalf>
type NewHalf = Omit<captureKeys.NewCaptureKey, 'entityId' | 'number'>

export type RotateRefusal = 'unknown' | 'ended' | 'many' | 'raced' | 'type'

export interface Rotated {
  key: captureKeys.CaptureKeyInfo
  /** False: a run within the last hour made it. */
  isNew: boolean
}

/** A run that was killed may have ended its transaction: the next one within this time makes no second key. */
export const RECENT_MS = 3_600_000

/** A row whose time of creation lies further ahead isn't recent. */
const AHEAD_MS = 60_000

/** Adds a key to a line. `again`: also if the newest was made within the last hour. */
export async function rotateLine(
  { store, stating, make }: { store: Store; stating: Stating; make: MakeKey },
  { alias, again }: { alias: string; again: boolean },
  by: By,
  now: number,
): Promise<ActResult<Rotated, RotateRefusal>> {
  const before = await captureKeys.findLine(store, alias)
  const [found] = before
  // The key is stated anew, because it is handed out again; `state` also checks the row's code.
  if (found && isRecent(found, now) && !again)
    return { done: { key: await state(store, stating, found, now), isNew: false } }
  const used = before.find(isActive)
  // Made before the transaction: an RSA pair takes a while.
  const half = used && (await make(used.type, alias))
  return perform<Rotated, RotateRefusal>(store, { action: ROTATE_CAPTURE, subject: alias }, by, async db => {
    const line = await captureKeys.lockLine(db, alias)
    const newest = line[0]
    if (!newest) return { refused: 'unknown' }
    // The newest may have been retired before its time; an older one is handed out then.
    const active = line.find(isActive)
    if (!active) return { refused: 'ended' }
    if (!half || newest.number !== found?.number) return { refused: 'raced' }
    if (half.type !== active.type) return { refused: 'type' }
    if (line.filter(key => key.state !== 'DESTROYED').length >= KEYS_MAX) return { refused: 'many' }
    // A forged row must not be given a successor that looks right.
    assertGranted(stating.ring, active)
    const number = newest.number + 1
    const key = await insertKey(db, stating, { ...half, entityId: active.entityId, number }, now)
    if (!key) return { refused: 'raced' }
    return { done: { key, isNew: true }, detail: { number, former: active.number, type: key.type } }
  })
}

const isActive = ({ state }: captureKeys.CaptureKeyInfo) => state === 'ACTIVE'

function isRecent(key: captureKeys.CaptureKeyInfo, now: number): boolean {
  return isActive(key) && key.number > 1 && key.createdAt > now - RECENT_MS && key.createdAt <= now + AHEAD_MS
}

export type RetireRefusal = 'unknown' | 'retired' | 'which' | 'unsettled' | 'used'

/** `number`: undefined names the only active key. `until`: the last permitted use, ms since the epoch. */
export interface Retiring {
  alias: string
  number: number | undefined
  until: number
  /** Not if it was used after this time, ms since the epoch. */
  unlessUsedAfter?: number
}

/** Retires a key of a line. It decrypts until days after `until`; then its private half is destroyed. */
export function retireKey(
  store: Store,
  ring: Ring,
  { alias, number, until, unlessUsedAfter }: Retiring,
  by: By,
  now: number,
): Promise<ActResult<captureKeys.CaptureKeyInfo, RetireRefusal>> {
  const subject = number === undefined ? alias : captureKeys.captureKeyName({ alias, number })
  return perform<captureKeys.CaptureKeyInfo, RetireRefusal>(
    store,
    { action: RETIRE_CAPTURE, subject },
    by,
    async db => {
      const line = await captureKeys.lockLine(db, alias)
      const active = line.filter(isActive)
      if (number === undefined && active.length > 1) return { refused: 'which' }
      const key = number === undefined ? active[0] : line.find(one => one.number === number)
      if (!key) return { refused: line.length > 0 && number === undefined ? 'retired' : 'unknown' }
      if (key.state !== 'ACTIVE') return { refused: 'retired' }
      if (unlessUsedAfter !== undefined && (key.lastUsedAt ?? 0) > unlessUsedAfter) return { refused: 'used' }
      const rest = active.filter(({ keyId }) => keyId !== key.keyId)
      if (rest.length > 0 && rest.every(({ createdAt }) => createdAt > now - captureKeys.SETTLED_MS))
        return { refused: 'unsettled' }
      assertGranted(ring, key)
      await captureKeys.retire(db, key.keyId, until)
      const retired = { ...key, state: 'RETIRED', retiredAt: until } as const
      await grantCaptureKey(db, ring, retired)
      return { done: retired, detail: { number: key.number, until: new Date(until).toISOString() } }
    },
  )
}

/** Lets workers replace the capture keys of an entity by themselves every `everyDays` days; undefined: no longer. */
export function setTurning(
  store: Store,
  { entityId, everyDays }: { entityId: string; everyDays: number | undefined },
  by: By,
): Promise<ActResult<undefined, 'off'>> {
  return perform<undefined, 'off'>(store, { action: TURN_CAPTURE, subject: entityId }, by, async db => {
    if (everyDays === undefined)
      return (await turning.switchOff(db, entityId)) ? { done: undefined, detail: { on: false } } : { refused: 'off' }
    await turning.switchOn(db, { entityId, everyDays })
    return { done: undefined, detail: { on: true, every_days: everyDays } }
  })
}
