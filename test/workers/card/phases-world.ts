// Hosts for the test of the fingerprint key's phases: each walks jobs over the real line with a ring of its own, which knows
// of another turn only once the store tells it. Statements of jobs side by side come in an order that a seed decides.

import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { followKeys, ringSource } from '../../../cli/open/key-ring.ts'
import { storedLives } from '../../../cli/open/known-lives.ts'
import { beginBoth, beginNew, beginSingle, retireVersion } from '../../../src/acts/key/card-phase.ts'
import { beginRotation } from '../../../src/acts/key/key-rotation.ts'
import { contractScopeId } from '../../../src/job/envelope/ids.ts'
import { openLog } from '../../../src/log.ts'
import { Secret } from '../../../src/secret.ts'
import type { Db, Store } from '../../../src/store/pool.ts'
import * as reseals from '../../../src/store/reseal/reseals.ts'
import { isSameCard } from '../../../src/token/token.ts'
import { readPhase, withKeys, withPhase } from '../../../src/vault/ring/key-lives.ts'
import { type LiveRing, openLiveRing } from '../../../src/vault/ring/key-ring.ts'
import { workReseal } from '../../../workers/reseal/reseal.ts'
import type { Installation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { writeLives } from '../../vault/write-lives.ts'
import { type OnFileWorld, openOnFile } from '../on-file-bundle.ts'
import { CONTRACT, Died } from '../provider/bundle.ts'

export const CARDS = 3
/** By their last four digits. */
const PANS = new Map(Array.from({ length: CARDS }, (_, card) => [testPan(card).slice(-4), testPan(card)]))
const SEALED = ['seal', 'before-image', 'network-token'] as const
const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
const PACE = {
  rowsPerSecondMax: 1_000_000,
  replicaLagMsMax: 10_000,
  workMsMax: 1e9,
  walBytesPerSecondMax: 1e12,
  leaseMs: 20,
  retryMs: 0,
  stuckMs: 0,
}

export interface Host {
  onFile: OnFileWorld
  ring: LiveRing
  store: Store
}

/** Decides who comes next: numbers from 0 to 1, the same for the same seed. */
export interface Chance {
  next(): number
}

export function chanceOf(seed: number): Chance {
  let state = seed | 0
  return {
    // mulberry32
    next() {
      state = (state + 0x6d2b79f5) | 0
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
    },
  }
}

export async function openHost(installation: Installation, chance: () => Chance, beside?: Host): Promise<Host> {
  const { vault } = installation
  const store = shuffled(vault.store, chance)
  const lives = storedLives(vault)
  const ring = await openLiveRing(vault.keks, ringSource(vault.store, lives))
  // What it seals with must be fresh. A run is much shorter than the time from one look to the next.
  await followKeys({ ring, log: installation.session.log, lifetime: installation.session.lifetime }, SEALED)
  const onFile = await openOnFile(
    { ...installation, vault: { ...vault, ring, store } },
    undefined,
    beside?.onFile.world,
  )
  return { onFile, ring, store }
}

/** Statements of one transaction stay in their order; those of others may come between. */
function shuffled(store: Store, chance: () => Chance): Store {
  const slowed = (db: Db): Db => {
    let last = Promise.resolve()
    return {
      query: statement => {
        const turns = Math.floor(chance().next() * 3)
        const sent = last.then(() => wait(turns))
        last = sent
        return sent.then(() => db.query(statement))
      },
    }
  }
  return {
    ...store,
    query: statement => slowed(store).query(statement),
    transaction: (work, options) => store.transaction(db => work(slowed(db)), options),
  }
}

async function wait(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await nextTurn()
}

/** The next act of a rotation, whatever its phase; what the store refuses comes later. */
export async function turn({ vault }: Installation, store: Store): Promise<void> {
  const keeper = { ...vault, store }
  const { phase } = (await vault.lives.read()).phase
  if (phase === 'BOTH') await beginNew(keeper, BY)
  else if (phase === 'NEW') await beginSingle(keeper, BY)
  else {
    const { version } = await beginRotation(keeper, 'fingerprint', BY)
    await beginBoth(keeper, version, BY)
  }
}

/** Works a pass, or dies after so many statements. */
export async function renew(host: Host, { vault }: Installation, dies: number | null): Promise<void> {
  const log = openLog('silent')
  let left = dies ?? Number.POSITIVE_INFINITY
  const mortal = (db: Db): Db => ({
    query: async statement => {
      left -= 1
      if (left < 0) throw new Died()
      return db.query(statement)
    },
  })
  const store: Store = {
    ...host.store,
    ...mortal(host.store),
    transaction: (work, options) => host.store.transaction(db => work(mortal(db)), options),
  }
  await workReseal({ store, ring: host.ring, halves: vault.halves, log }, PACE).catch(error => {
    if (!(error instanceof Died)) throw error
  })
}

/** Ends the rotation, if there is one. */
export async function settle(installation: Installation, host: Host): Promise<void> {
  const { store, lives } = installation.vault
  for (let tries = 0; (await lives.read()).phase.phase !== 'SINGLE'; tries += 1) {
    if (tries > 200) throw new Error(`it never ends: ${JSON.stringify(await reseals.find(store, 'fingerprint'))}`)
    await renew(host, installation, null)
    await turn(installation, store)
  }
}

/** Retires the former versions under which no card is left. */
export async function retire({ vault }: Installation, store: Store): Promise<void> {
  const { phase, looks } = (await vault.lives.read()).phase
  if (phase !== 'SINGLE') return
  for (const version of looks.slice(1)) await retireVersion({ ...vault, store }, { version, isForced: false }, BY)
}

/** A token beside the phase; without a token, if there is none. */
interface Seen {
  /** JSON. */
  phase: string
  token_id: string | null
  status: string
  cards: string[] | null
  last_four: string | null
  third_party_type: string | null
  sealed: boolean
  fps: string[]
  versions: number[]
}

/**
 * Throws if at this moment a card has two tokens, or a token isn't found by its card. `isSettled`: no rotation is under way,
 * so that each number is known under one version.
 */
export async function check(
  { vault, scope }: Installation,
  ring: LiveRing,
  { isSettled = false }: { isSettled?: boolean } = {},
): Promise<void> {
  // One statement sees one moment.
  const { rows } = await vault.store.query<Seen>({
    name: 'test-check',
    text: `select p.phase, t.token_id, t.status, t.cards, t.last_four, t.third_party_type,
  t.sealed is not null as sealed, c.fps, c.versions
from tokenmill.key_lives as p left join tokenmill.token as t on t.token_scope = $1
cross join lateral (
  select coalesce(array_agg(fp order by fp), '{}') as fps, coalesce(array_agg(version order by fp), '{}') as versions
  from tokenmill.card where token_id = t.token_id
) as c`,
    values: [scope],
  })
  const [first] = rows
  if (!first) throw new Error('there is no phase')
  const phase = readPhase(first.phase)
  const held = new Set(ring.names())
  if (!phase.looks.every(version => held.has(`fingerprint/${version}`))) await ring.refresh()
  const seen = new Set<string>()
  for (const row of rows) {
    if (row.token_id === null) continue
    const about = JSON.stringify(row)
    const kept = [...(row.cards ?? [])].sort()
    if (kept.join() !== row.fps.join()) throw new Error(`the directory differs from the row: ${about}`)
    if (row.status === 'DELETED') {
      if (row.fps.length > 0) throw new Error(`a deleted token has cards: ${about}`)
      continue
    }
    const name = `${row.last_four} ${row.third_party_type}`
    if (seen.has(name)) throw new Error(`a card has two tokens: ${about}`)
    seen.add(name)
    const place = row.third_party_type === null ? scope : contractScopeId(scope, CONTRACT)
    const pan = new Secret(PANS.get(row.last_four ?? '') ?? '')
    const known = phase.looks.map(version => ring.fingerprintBy(pan, place, version))
    if (!isSameCard(row.fps, known)) throw new Error(`a card isn't found: ${about}`)
    if (!row.sealed) continue
    const written = phase.writes.map(version => ring.fingerprintBy(pan, place, version))
    if (phase.phase === 'NEW' && !written.every(fp => row.fps.includes(fp)))
      throw new Error(`a token lacks the fingerprint that alone is written: ${about}`)
    if (isSettled && row.versions.join() !== phase.writes.join())
      throw new Error(`a number is known under another version: ${about}`)
  }
}

/** Removes all tokens, what hosts were told of them, and the versions of the key that nothing needs any more. */
export async function clear({ vault }: Installation, hosts: readonly Host[]): Promise<void> {
  const emptied = TABLES.map(table => `delete from tokenmill.${table}`)
  const keys = `delete from tokenmill.data_key where purpose = 'fingerprint' and state = 'DECRYPT_ONLY'`
  // Statements of one text are one transaction.
  await vault.store.query({ text: [...emptied, keys].join(';') })
  await writeLives(vault, now => {
    const next = withKeys(now, 'fingerprint', all => all.filter(({ state }) => state !== 'DECRYPT_ONLY'))
    return withPhase(next, { ...next.phase, looks: next.phase.writes })
  })
  for (const { onFile } of hosts) {
    onFile.world.told.length = 0
    onFile.world.queued.length = 0
  }
}
const TABLES = [
  'card',
  'scheme_card',
  'token',
  'scheme_token',
  'scheme_intent',
  'source_reference',
  'before_image',
  'receipt',
  'outbox',
  'scratch',
  'scratch_run',
]

export const nameOf = async ({ vault, scope }: Installation, card: number, isTheirs = false) => {
  const { rows } = await vault.store.query<{ token_id: string; third_party_token: string | null }>({
    text: `select token_id, third_party_token from tokenmill.token where token_scope = $1 and last_four = $2
and status <> 'DELETED' and (third_party_type is not null) = $3`,
    values: [scope, testPan(card).slice(-4), isTheirs],
  })
  return { tokenId: rows[0]?.token_id ?? randomUUID(), theirs: rows[0]?.third_party_token ?? null }
}
