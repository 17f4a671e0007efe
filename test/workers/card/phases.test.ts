// The fingerprint key turns while jobs run on hosts that know different versions of it: any job beside any other, beside
// phase changes and the workers' passes, with deaths at any statement. At every moment a card has one live token, and each
// token is found by its card; at the end each number is known under the last version alone.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ringSource } from '../../../cli/open/key-ring.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import { formatReuseToken } from '../../../src/token/token.ts'
import { type LiveRing, openLiveRing } from '../../../src/vault/ring/key-ring.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { owner, record } from '../on-file-bundle.ts'
import { CONTRACT, type Job } from '../provider/bundle.ts'
import {
  CARDS,
  type Chance,
  chanceOf,
  check,
  clear,
  type Host,
  nameOf,
  openHost,
  renew,
  retire,
  settle,
  turn,
} from './phases-world.ts'

/** How many sets of acts follow one another in a run. Each set is an interleaving. */
const ROUNDS = 8
/**
 * Without the check of the turn in the insert of cards, each of six seeds failed within 32 interleavings. Before a release
 * and after a change of the phases, run 100,000.
 */
const INTERLEAVINGS = Number(process.env['PHASES_INTERLEAVINGS'] ?? 1_000)
const RUNS = Math.ceil(INTERLEAVINGS / ROUNDS)
const SEED = Number(process.env['PHASES_SEED'] ?? Date.now() % 2 ** 31)
const HOSTS = 3
const THEIRS = {
  reuse_token_type: 'THIRD_PARTY_1',
  reuse_token_details: { expiry_month: 7, expiry_year: 2033 },
  token_context: { payment_provider_contract: CONTRACT },
}

const card = fc.nat(CARDS - 1)
const type = fc.constantFrom('REUSE' as const, 'ANALYTICS' as const)
type Deed =
  | { do: 'create'; card: number; type: 'REUSE' | 'ANALYTICS' }
  | { do: 'theirs' | 'delete' | 'drop'; card: number }
  | { do: 'link'; card: number; to: number }
  | { do: 'chunk'; cards: number[]; type: 'REUSE' | 'ANALYTICS'; relink: boolean }
  | { do: 'dry'; cards: number[] }
  | { do: 'reverse'; nth: number }
  | { do: 'turn' | 'renew' | 'retire' }
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('create' as const), card, type }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('delete' as const, 'theirs' as const, 'drop' as const), card }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('link' as const), card, to: card }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('chunk' as const),
      cards: fc.array(card, { minLength: 1, maxLength: 3 }),
      type,
      relink: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('dry' as const), cards: fc.array(card, { minLength: 1, maxLength: 2 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reverse' as const), nth: fc.nat(5) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('turn' as const, 'turn' as const, 'renew' as const, 'retire' as const),
    }),
  },
)
/** `dies`: the host dies after so many statements. */
const act = fc.record({ deed, host: fc.nat(HOSTS - 1), dies: fc.option(fc.nat(30), { freq: 5, nil: null }) })
type Act = { deed: Deed; host: number; dies: number | null }
/** The acts of one list run side by side. */
const round = fc.array(act, { minLength: 2, maxLength: 4 })

describeOnRedis('the fingerprint key', engine => {
  let installation: Installation
  let hosts: Host[]
  let witness: LiveRing
  let chance: Chance = chanceOf(0)
  beforeAll(async () => {
    installation = await openInstallation(engine)
    hosts = []
    for (let host = 0; host < HOSTS; host += 1) hosts.push(await openHost(installation, () => chance, hosts[0]))
    witness = await openLiveRing(
      installation.vault.keks,
      ringSource(installation.vault.store, installation.vault.lives),
    )
  })
  afterAll(() => installation?.close())

  it(
    'turns beside any jobs without a second token for a card, and without a card that is not found',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(round, { minLength: ROUNDS, maxLength: ROUNDS }),
          fc.integer(),
          async (rounds, seed) => {
            chance = chanceOf(seed)
            const jobs: Job[] = []
            await turnTo(seed)
            for (const acts of rounds) await play(acts, jobs)
            await settle(installation, hostAt(0))
            await check(installation, witness, { isSettled: true })
            await clear(installation, hosts)
          },
        ),
        { numRuns: RUNS, seed: SEED, endOnFailure: process.env['PHASES_SHRINK'] !== '1', includeErrorInReport: true },
      )
    },
    // Long, because many may run side by side on a busy machine: a rotation that never ends throws.
    120_000 + RUNS * 10_000,
  )

  it('lets a job go on where another host died with the lease, however long that host has waited before', async () => {
    const [dead, other] = [hostAt(0).onFile.world, hostAt(1).onFile.world]
    const theirs = async (world: typeof dead) =>
      world.job('token-create', { token_scope: installation.scope, ...THEIRS, ...(await world.cardOf(testPan(0))) })
    dead.wait(600_000)
    dead.thirdParty.onCall = () => dead.dieAt(0)
    await dead.run(await theirs(dead)).catch(() => undefined)
    expect(dead.isDead()).toBe(true)
    dead.thirdParty.onCall = () => undefined
    dead.revive()
    expect(await other.run(await theirs(other))).toMatchObject({ code: 200 })
    await clear(installation, hosts)
  })

  const hostAt = (index: number): Host => {
    const host = hosts[index]
    if (!host) throw new Error('there is no such host')
    return host
  }

  /**
   * Begins a rotation for two of three seeds: one third of the runs begins in the phase after that, another third two
   * phases later.
   */
  async function turnTo(seed: number): Promise<void> {
    for (let left = Math.abs(seed) % 3; left > 0; left -= 1) {
      await turn(installation, installation.vault.store)
      await renew(hostAt(0), installation, null)
    }
  }

  async function play(acts: readonly Act[], jobs: Job[]): Promise<void> {
    const begun = acts.map(one => perform(one, jobs))
    const looks = [check(installation, witness)]
    const again = (await Promise.all(begun)).flatMap(job => job ?? [])
    await Promise.all(looks)
    for (const { onFile } of hosts) onFile.world.revive()
    await check(installation, witness)
    // A killed job comes again, on another host, once the leases of the dead one have ended.
    if (acts.some(({ deed, dies }) => deed.do === 'theirs' && dies !== null)) hostAt(0).onFile.world.wait(60_000)
    for (const job of again) {
      const result = await hostAt(1)
        .onFile.world.run(job)
        .catch(async error => {
          throw new Error(`${JSON.stringify(acts)}: ${String(error)} ${await dump()}`)
        })
      expectNoFault(result)
    }
    if (again.length > 0) await check(installation, witness)
  }

  /** What a job that never ends may be waiting for. */
  async function dump(): Promise<string> {
    const { store } = installation.vault
    const ask = async (text: string) => JSON.stringify((await store.query({ text })).rows)
    return [
      JSON.stringify(hostAt(0).onFile.world.deps.clock() - Date.now()),
      await ask(
        'select provision_id, state, lease, due_at, asked, retired_at, taken_at, cards from tokenmill.scheme_token',
      ),
      await ask('select * from tokenmill.scheme_card'),
      await ask('select token_id, status, cards, third_party_token from tokenmill.token'),
      await ask('select intent_id, state, action, provision_id, receipt_id from tokenmill.scheme_intent'),
      await ask('select phase from tokenmill.key_lives'),
    ].join('\n')
  }

  /** Returns the job if its host died. */
  async function perform({ deed, host, dies }: Act, jobs: Job[]): Promise<Job | undefined> {
    const own = hostAt(host)
    if (deed.do === 'turn') return turn(installation, own.store).then(() => undefined)
    if (deed.do === 'renew') return renew(own, installation, dies).then(() => undefined)
    if (deed.do === 'retire') return retire(installation, own.store).then(() => undefined)
    const job = await jobOf(own, deed, jobs)
    if (!job) return undefined
    if (deed.do === 'create' || deed.do === 'link') jobs.push(job)
    const { world } = own.onFile
    if (dies !== null) world.dieAt(dies)
    try {
      const result = await world.run(job)
      if (!world.isDead()) expectNoFault(result)
      return world.isDead() ? job : undefined
    } catch (error) {
      if (world.isDead()) return job
      throw error
    }
  }

  function expectNoFault({ error, code }: Result): void {
    // A job that was reversed before it began is cancelled.
    if (code === 500 && !(error && 'reversal_status' in error)) throw new Error(JSON.stringify(error))
  }

  async function jobOf({ onFile }: Host, deed: Deed, jobs: readonly Job[]): Promise<Job | undefined> {
    const { world, scope } = onFile
    switch (deed.do) {
      case 'create': {
        const token = { token_scope: scope, token_type: deed.type }
        return world.job('token-create', { ...token, ...(await world.cardOf(testPan(deed.card))) })
      }
      case 'theirs':
        return world.job('token-create', { token_scope: scope, ...THEIRS, ...(await world.cardOf(testPan(deed.card))) })
      case 'delete': {
        const { tokenId } = await nameOf(installation, deed.card)
        return world.job('token-lifecycle', { id: formatReuseToken(tokenId), action: 'DELETE' })
      }
      case 'drop': {
        const { theirs } = await nameOf(installation, deed.card, true)
        return theirs === null ? undefined : world.job('token-lifecycle', { id: theirs, action: 'DELETE' })
      }
      case 'link': {
        const { tokenId } = await nameOf(installation, deed.card)
        return world.job('token-update', { id: formatReuseToken(tokenId), ...(await world.cardOf(testPan(deed.to))) })
      }
      case 'chunk': {
        const records = deed.cards.map((pan, index) =>
          record(pan, deed.relink ? owner(`${index}`) : undefined, { token_type: deed.type }),
        )
        return onFile.chunkJob(records, { policy: deed.relink ? { relink: true } : {} })
      }
      case 'dry':
        return onFile.chunkJob(
          deed.cards.map(pan => record(pan)),
          { dryRun: true },
        )
      case 'reverse': {
        const job = jobs[deed.nth % Math.max(1, jobs.length)]
        if (!job) return undefined
        const { receiptId, envelope } = job
        return world.job('reversal', { receipt_id: receiptId, envelope }, { bySystem: true })
      }
      default:
        return undefined
    }
  }
})
