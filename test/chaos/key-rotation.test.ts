// Every kind of rotation while jobs run, and while its command, a worker or PostgreSQL is killed at a random moment.
// The same command then goes on. At the end no row is under a former key, and every card opens. KEY_CHAOS_SEED repeats
// a run. Without KEY_CHAOS_ROUNDS the test is short: it rotates one key and kills no worker, because commands wait 30 s
// for a killed one.
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { countUnder } from '../../src/store/reseal/sealed-rows.ts'
import { type Child, startCommand } from '../support/process.ts'
import { testPan } from '../support/test-pan.ts'
import { until } from '../support/until.ts'
import { insertTokens, openAll } from '../workers/reseal/tokens.ts'
import { type Chaos, childrenRunning, describeChaos, kill9 } from './bundle.ts'

const TOKENS = 2_000
const SEED = Number(process.env['KEY_CHAOS_SEED'] ?? Date.now() % 1_000_000)
const ROUNDS = Number(process.env['KEY_CHAOS_ROUNDS'] ?? 0)
const TRAFFIC_MS = 50
/** How often a command may be started until it ends well; only its first two runs are disturbed. */
const TRIES = 8
const SEALED = ROUNDS > 0 ? (['seal', 'private-half', 'before-image'] as const) : (['seal'] as const)

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
function chanceOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const HASHED = ROUNDS > 0 ? (['digest', 'grant', 'owner', 'api-key', 'intake', 'network-token'] as const) : []

type Victim = 'command' | 'worker' | 'postgres'

describeChaos('keys that turn', 'redis', chaos => {
  const chance = chanceOf(SEED)
  const run = (words: readonly string[]): Child =>
    startCommand(['key', ...words], { env: chaos.env as Record<string, string> })

  /** Kills one of the three, at most 2 s after the command began. */
  async function disturb(child: Child, victims: readonly Victim[]): Promise<string> {
    await pause(chance() * 2_000)
    const victim = victims[Math.floor(chance() * victims.length)] ?? 'command'
    if (victim === 'command') child.signal('SIGKILL')
    // The killed worker's row counts as alive for 30 s, so commands wait that long.
    if (victim === 'worker') kill9(childrenRunning('worker-process').slice(0, 1))
    if (victim === 'postgres') {
      await chaos.postgres.kill9()
      await chaos.postgres.start()
    }
    return victim
  }

  /** Runs the command until it ends well; its first two runs are disturbed. */
  async function insist(words: readonly string[], victims: readonly Victim[]): Promise<void> {
    const told: string[] = []
    for (let tries = 0; tries < TRIES; tries++) {
      const child = run(words)
      told.push(tries < 2 ? await disturb(child, victims) : 'left alone')
      const { code } = await child.exit
      if (code === 0) return
      told.push(`${code}: ${child.stderr().trim().slice(-300)}`)
    }
    throw new Error(`key ${words.join(' ')} did not end well: ${told.join(' | ')}`)
  }

  it(`are replaced and seal everything anew (KEY_CHAOS_SEED=${SEED})`, async () => {
    const { installation } = chaos
    const { store, ring } = installation.vault
    await insertTokens(store, ring, installation.scope, TOKENS)
    await installation.startWorkers({ processes: 2 })
    const endTraffic = startTraffic(chaos)
    for (let round = 0; round < Math.max(1, ROUNDS); round++) {
      const killsWorker = ROUNDS > 0 ? (round + SEED) % SEALED.length : undefined
      for (const [index, purpose] of SEALED.entries())
        await insist(['rotate', purpose], index === killsWorker ? ['worker'] : ['command', 'postgres'])
      for (const purpose of HASHED) await insist(['rotate', purpose], ['command', 'postgres'])
      if (HASHED.length > 0) await insist(['reseal', 'grant'], ['command', 'postgres'])
      for (const purpose of SEALED.filter(name => name !== 'before-image')) {
        const reseal = insist(['reseal', purpose, '--follow'], ['command', 'postgres']).then(() => true)
        reseal.catch(() => undefined)
        // A re-encryption rests until 90 s after its beginning, when nobody seals under the former version any more. Every
        // process has its keys anew within 20 s, so the test backdates the beginning then.
        await until(async () => (await hasEnded(reseal)) || (await letProve(chaos)))
      }
    }
    expect(await endTraffic()).toEqual([])
    await until(() =>
      ring.refresh().then(
        () => true,
        () => false,
      ),
    )
    const active = await activeVersions(chaos)
    expect(active['seal']).toBeGreaterThan(1)
    const opened = await openAll(store, ring)
    expect(Object.keys(opened)).toEqual([String(active['seal'])])
    const anew = [...SEALED.filter(name => name !== 'before-image'), ...HASHED.filter(name => name === 'grant')]
    for (const purpose of anew)
      for (let version = 1; version < (active[purpose] ?? 0); version++)
        expect(await store.transaction(db => countUnder(db, purpose, version)), `${purpose}/${version}`).toEqual([])
  })
})

async function hasEnded(ended: Promise<boolean>): Promise<boolean> {
  return Promise.race([ended, pause(200).then(() => false)])
}

async function letProve(chaos: Chaos): Promise<boolean> {
  const text = `update tokenmill.reseal set started_at = started_at - interval '1 hour', due_at = now()
where state = 'RUNNING' and started_at between now() - interval '10 minutes' and now() - interval '20 seconds'
and lease is null and due_at > now() + interval '5 seconds'`
  return chaos.ask(text).then(
    () => false,
    () => false,
  )
}

async function activeVersions({ ask }: Chaos): Promise<Record<string, number>> {
  const rows = await ask<{ purpose: string; version: number }>(
    `select purpose, version from tokenmill.data_key where state = 'ACTIVE'`,
  )
  return Object.fromEntries(rows.map(({ purpose, version }) => [purpose, version]))
}

/**
 * Sends each job twice, one after the other, until the returned function is called; that returns the codes other than
 * 200.
 * They are paced: as many as fit would take the processor from what is tested.
 */
function startTraffic({ installation }: Chaos): () => Promise<number[]> {
  let isEnded = false
  const others = (async () => {
    const client = await installation.connect()
    const seen: number[] = []
    for (let index = TOKENS; !isEnded; index++) {
      const card = { cardNumber: testPan(index), expiryMonth: 12, expiryYear: 2035 }
      const request = { token_scope: installation.scope, ...(await client.encryptCard(card)) }
      const jti = `card-${index}`
      const made = await client.call('token-create', request, { jti })
      const again = await client.call('token-create', request, { jti })
      // A repeat is answered from the receipt of the first.
      const isRepeat = made.record?.['reuse_token'] === again.record?.['reuse_token']
      seen.push(...[made.code, again.code, isRepeat ? 200 : 0].filter(code => code !== 200))
      await pause(TRAFFIC_MS)
    }
    return seen
  })()
  return () => {
    isEnded = true
    return others
  }
}
