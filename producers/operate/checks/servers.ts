// Whether the servers behind tokenmill answer, hold what this release needs, and agree on the time; and whether the
// key-encryption key opens the store's keys.
import { type DueKey, listDue } from '../../../src/acts/key/due-keys.ts'
import { type ExpiringKey, listExpiring } from '../../../src/acts/key/expiring-keys.ts'
import { dateOf } from '../../../src/clock.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import type { RedisInfo } from '../../../src/queue/redis-info.ts'
import { causeOf } from '../../../src/server-error.ts'
import { BEAT } from '../../../src/store/access/beat.ts'
import * as processes from '../../../src/store/access/processes.ts'
import type { Db, Store } from '../../../src/store/pool.ts'
import { assertSchema, MIGRATIONS } from '../../../src/store/schema.ts'
import * as storeServer from '../../../src/store/server.ts'
import { duration } from '../../../src/units.ts'
import { type KnownLives, LIVES_TROUBLE } from '../../../src/vault/ring/known-lives.ts'
import { critical, unknown, type Verdict, warning, well, worstFirst } from '../check.ts'
import { judgeRoom } from '../redis-memory.ts'

/** The difference between the clocks; from `critical` on a worker takes no jobs. */
const SKEW_MS = { warning: 1_000, critical: 5_000 } as const

export interface ServerSources {
  store(): Promise<Pick<Store, 'query' | 'transaction' | 'writableServers' | 'troubles'>>
  queues(): Promise<Queues>
  /** Undefined if the queues are on PostgreSQL. */
  redis: (() => Promise<RedisInfo[]>) | undefined
  /** Unwraps all keys of the vault as a worker does; throws the error with which a worker would end. */
  openKeys(): Promise<OpenedKeys>
}

interface OpenedKeys {
  /** The current key-encryption key. */
  kekId: string
  /** Why this host can't use further keys that its settings name. */
  troubles: string[]
  /** The lives of the data keys, as they were read. */
  lives?: Pick<KnownLives, 'trouble'>
}

export async function askStore({ store }: Pick<ServerSources, 'store'>): Promise<Verdict> {
  const began = performance.now()
  const db = await store()
  await storeServer.tryWrites(db)
  const took = duration(performance.now() - began)
  if (db.writableServers() > 1) return critical('two PostgreSQL servers take writes', 'stop the old primary')
  return well(`PostgreSQL answered in ${took} and takes writes`)
}

export async function askQueues({ queues, redis }: Pick<ServerSources, 'queues' | 'redis'>): Promise<Verdict> {
  // If this user may not use INFO, only the queues are asked.
  const asked = redis?.().catch(() => [])
  const began = performance.now()
  const failure = await queues()
    .then(opened => opened.ping())
    .then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
  const took = duration(performance.now() - began)
  // What Redis says of its memory says more than that it refuses a write for it.
  const cause = causeOf(failure?.error)
  const [full] =
    cause && cause.code !== 'OOM' ? [] : worstFirst(((await asked) ?? []).flatMap(info => judgeRoom(info) ?? []))
  if (full) return full
  if (failure) throw failure.error
  const opened = await queues()
  const name = opened.engine === 'redis' ? 'Redis' : 'PostgreSQL'
  return well(`queues on ${name} answered in ${took}`)
}

export async function askSchema({ store }: ServerSources): Promise<Verdict> {
  await assertSchema(await store())
  return well(`has migration ${MIGRATIONS.at(-1)}, the last that this release needs`)
}

export async function askVaultKeys({ openKeys, store, now }: ServerSources & { now: number }): Promise<Verdict> {
  try {
    const { kekId, troubles, lives } = await openKeys()
    const says = `${kekId} opens the data keys and the signing key`
    const trouble = lives?.trouble()
    if (trouble) return critical(`${says}; ${LIVES_TROUBLE[trouble]}`, 'ask `tokenmill doctor`, which names the keys')
    if (troubles.length > 0)
      return warning(`${says}; not usable here: ${troubles.join('; ')}`, 'correct TOKENMILL_KEK, or what it names')
    const lacking = (await processes.listVault(await store(), BEAT.deadMs)).filter(({ keys }) => !hasKek(keys, kekId))
    if (lacking.length === 0) return judgeKeys(await store(), now, says)
    const places = [...new Set(lacking.map(({ role, host }) => `${role} on ${host}`))].join(', ')
    return warning(`${says}; ${places} could not start again: that key is not there`, 'add it to TOKENMILL_KEK there')
  } catch (error) {
    const { code, cause } = error as { code?: unknown; cause?: unknown }
    if (code === 'kek_away') {
      const why = cause instanceof Error ? cause.message : 'the key-encryption key cannot be reached'
      return critical(`no process can start: ${why}`, 'see that the token of the key can be reached from here')
    }
    if (code !== 'key_unavailable') throw error
    const why = cause instanceof Error ? `: ${cause.message}` : ''
    return critical(
      `the key-encryption key does not open every key of the store${why}`,
      'restore the KEK file from its copy',
    )
  }
}

async function judgeKeys(db: Db, now: number, says: string): Promise<Verdict> {
  return judgeDue(await listDue(db, now), await listExpiring(db, now), says)
}

/** A process that opens no vault names no keys. */
function hasKek(keys: readonly string[], kekId: string): boolean {
  return keys.length === 0 || keys.includes(kekId)
}

export async function askClock({ store }: Pick<ServerSources, 'store'>): Promise<Verdict> {
  const db = await store()
  await storeServer.ping(db)
  const before = Date.now()
  const there = await storeServer.readClock(db)
  const took = Date.now() - before
  const skew = before + took / 2 - there
  const off = Math.max(0, Math.abs(skew) - took / 2)
  const says = `this host's clock is ${duration(Math.abs(skew))} ${skew < 0 ? 'behind' : 'ahead of'} the store's`
  if (off > SKEW_MS.critical)
    return critical(`${says}: workers here take no jobs, and no process here is ready`, 'correct NTP on this host')
  if (off > SKEW_MS.warning) return warning(says, 'correct NTP on this host, or on the store’s')
  if (took > SKEW_MS.critical) return unknown('the store answers too slowly to compare the clocks')
  return well(says)
}

const ROTATIONS = { kek: 'key rotate kek --to ID', 'signing-key': 'key rotate signing' } as const

/** What `status` says of keys that should be replaced. `says`: what is said if no key is due. `expiring`: of its data keys `due` says more. */
function judgeDue(due: readonly DueKey[], expiring: readonly ExpiringKey[], says: string): Verdict {
  const others = expiring.flatMap(({ key, kind, replaceBy }) => (kind === 'data-key' ? [] : [{ key, kind, replaceBy }]))
  if (due.length + others.length === 0) return well(says)
  const words = due.map(({ purpose, version, why, replaceBy }) =>
    why === 'seals'
      ? `${purpose}/${version} has made half of the seals that a key may make`
      : `${purpose}/${version} should be replaced by ${dateOf(replaceBy)}`,
  )
  words.push(...others.map(({ key, replaceBy }) => `${key} should be replaced by ${dateOf(replaceBy)}`))
  const turning = due.filter(({ turns }) => turns).map(({ purpose }) => `\`tokenmill key rotate ${purpose}\``)
  turning.push(...others.map(({ kind }) => `\`tokenmill ${ROTATIONS[kind]}\``))
  return warning(words.join('; '), turning.join(', ') || 'a later release can replace it')
}
