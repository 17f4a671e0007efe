// A worker in the test's process: jobs walk the real line with a real store. The network is scripted, the clock can be
// put forward, and the worker can be stopped at any call of the store or the network, as if its process had died.
import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { readSystemKey } from '../../../cli/open/system-clients.ts'
import type { Result, ResultEvent } from '../../../src/job/answer/result.ts'
import type { Role } from '../../../src/job/catalogue.ts'
import { CATALOGUE, type Kind } from '../../../src/job/composition.ts'
import { envelopeDigest } from '../../../src/job/envelope/digest.ts'
import { Claims, peek, sign } from '../../../src/job/envelope/envelope.ts'
import { jobId, receiptId } from '../../../src/job/envelope/ids.ts'
import { openLog } from '../../../src/log.ts'
import { openRegistry } from '../../../src/metrics.ts'
import type { ReceivedJob } from '../../../src/queue/engine.ts'
import type { SchemeProvider } from '../../../src/scheme/provider.ts'
import * as outbox from '../../../src/store/job/outbox.ts'
import type { Db, Statement, Store } from '../../../src/store/pool.ts'
import * as storedSchemes from '../../../src/store/provider/stored-schemes.ts'
import { encryptCard } from '../../../src/vault/capture/encrypt.ts'
import { CARD_QUESTIONS } from '../../../workers/card/questions.ts'
import { bodyOfRow } from '../../../workers/card/stored-answer.ts'
import { openHandlers } from '../../../workers/composition.ts'
import { openDirectory } from '../../../workers/directory.ts'
import type { LineDeps } from '../../../workers/line/deps.ts'
import { runJob } from '../../../workers/line/run-job.ts'
import { openWorkerMetrics } from '../../../workers/metrics/metrics.ts'
import type { ProviderDeps, Providers } from '../../../workers/provider/deps.ts'
import { openNetworks } from '../../../workers/provider/networks.ts'
import { queueOwed, workDue, workNotices } from '../../../workers/provider/reconcile/loop.ts'
import { openLookUps } from '../../../workers/set/look-ups.ts'
import { openSets } from '../../../workers/set/write-set.ts'
import { SCHEDULE } from '../../../workers/webhook/schedule.ts'
import type { Installation } from '../../support/installation.ts'
import { openNetwork, type ScriptedNetwork } from '../../support/scripted-network.ts'

/** Thrown after the simulated death of the process. */
export class Died extends Error {
  override name = 'Died'
}

export interface World {
  network: ScriptedNetwork
  /** Makes reuse tokens of type `THIRD_PARTY_1`, for every contract but `NO_CONTRACT`. */
  thirdParty: ScriptedNetwork
  deps: LineDeps & ProviderDeps
  /** Results and events in the order of their publication. */
  told: (Result | ResultEvent)[]
  /** Jobs that the product itself queued. */
  queued: ReceivedJob[]
  /** Puts the clock forward, ms. */
  wait(ms: number): void
  job(kind: Kind, request: Record<string, unknown>, options?: JobOptions): Job
  /** Makes one attempt. */
  attempt(job: ReceivedJob): ReturnType<typeof runJob>
  /** Makes attempts until the job has ended. Returns its last result. */
  run(job: ReceivedJob & { receiptId: string }): Promise<Result>
  ask(kind: Kind, request: Record<string, unknown>, options?: JobOptions): Promise<Result>
  /** Works due rows, queued jobs and waiting results until none is left. */
  calm(): Promise<void>
  resultOf(receiptId: string): Result | undefined
  /** The process dies at the nth call of the store or the network. */
  dieAt(n: number): void
  isDead(): boolean
  /** Starts another process in its place. */
  revive(): void
  cardOf(pan: string, more?: Record<string, unknown>): Promise<Record<string, unknown>>
}

/** `envelope`: as a reversal names it. */
export interface Job extends ReceivedJob {
  jti: string
  receiptId: string
  envelope: string
}

export interface JobOptions {
  resultColumns?: boolean
  /** The roles that the envelope claims. */
  roles?: readonly Role[] | undefined
  jti?: string
  /** The records of a chunk. */
  block?: string | undefined
  sequence?: number
  expiresInMs?: number
  /** As the system client `gateway`, on the client's behalf. */
  bySystem?: boolean
}

/** One simulated process. Once it is dead, its further calls fail. */
interface Process {
  deps: World['deps']
  left: number
}

const ROLES: readonly Role[] = ['TOKEN_WRITE', 'TOKEN_READ', 'TOKEN_LIFECYCLE', 'SCHEME_TOKEN']
export const CONTRACT = '6e1f0c3a-8d52-4b7e-9a10-2f4c5d6e7f80'
/** No job of these tests is a report or a webhook. */
const handlers = openHandlers({
  makeReport: () => Promise.reject(new Error('no job of these tests is a report')),
  makesReports: true,
  console: { origin: 'http://localhost:8090', rpId: 'localhost', installationId: '', isEmbedded: false },
  webhooks: { schedule: SCHEDULE, post: () => Promise.reject(new Error('no job of these tests is a webhook')) },
})
const THIRD_PARTY = `third-party ${CONTRACT}`

/** A clock that tests put forward. */
function openClock() {
  let ahead = 0
  return {
    clock: () => Date.now() + ahead,
    wait: (ms: number) => {
      ahead += ms
    },
  }
}

/**
 * `oneTokenPerCard`: the third party has but one for each card, whoever asks. `beside`: the same networks as this world's, and
 * the same clock: a lease ends for all hosts at once.
 */
export async function openWorld(
  installation: Installation,
  { oneTokenPerCard = false, beside }: { oneTokenPerCard?: boolean; beside?: World | undefined } = {},
): Promise<World> {
  const { vault, credentials, session } = installation
  const network = beside?.network ?? openNetwork()
  const thirdParty =
    beside?.thirdParty ??
    openNetwork({
      name: THIRD_PARTY,
      referenceOf: (id, pan) =>
        `ext_${createHash('sha256')
          .update(oneTokenPerCard ? pan : id)
          .digest('hex')
          .slice(0, 24)}`,
    })
  const { clock, wait } = beside ? { clock: beside.deps.clock, wait: beside.wait } : openClock()
  const told: World['told'] = []
  const queued: ReceivedJob[] = []
  const received = (id: string, data: unknown): ReceivedJob => ({
    id,
    data,
    attempt: 1,
    stalled: 0,
    exhausted: false,
    tied: false,
    enqueuedAt: Date.now(),
  })
  const queues = {
    ...installation.queues,
    add: async (queue: string, job: { id: string; data: unknown }) => {
      if (queue === 'reversal' && !queued.some(({ id }) => id === job.id)) queued.push(received(job.id, job.data))
    },
    addBulk: async () => {},
    remove: async () => true,
  }
  const metrics = openWorkerMetrics(openRegistry({ role: 'test' }), CATALOGUE)
  const log = openLog(process.env['TEST_LOG'] ?? 'silent')
  const directory = await openDirectory({ ...vault, queues: installation.queues, onUngranted: () => {} }, Date.now)
  const { audience, thirdPartyTypes, localSchemes, dryRunRowsMax } = session.config
  const announcer: LineDeps['announcer'] = {
    seal: message => message,
    publish: async ({ body, inColumns = false }) => {
      const result = JSON.parse(body) as Result
      assert.equal(inColumns, result.columns !== undefined, 'a result in columns is signed as one')
      told.push(result)
    },
    sweep: async () => 0,
    isHeldBack: async () => false,
    close: async () => {},
  }
  const signingKey = await readSystemKey(installation.dataDir, 'worker')
  const gatewayKey = await readSystemKey(installation.dataDir, 'gateway')
  const settings = { audience, thirdPartyTypes, localSchemes, guessesMax: 1_000_000, dryRunRowsMax }

  const storeAndSets = (store: Store, networks: LineDeps['networks']) => {
    const reading = () => openLookUps(store, networks.schemeTokens.findShown)
    const writing = () => openSets({ store, ring: vault.ring, clock, metrics, log, networks })
    return { store, lookUps: reading(), sets: writing(), background: { lookUps: reading(), sets: writing() } }
  }

  function begin(): Process {
    const begun = { left: Number.POSITIVE_INFINITY } as Process
    const live = () => {
      begun.left -= 1
      if (begun.left < 0) throw new Died()
    }
    const mdes = mortalNetwork(network.provider, live)
    const theirs = mortalNetwork(thirdParty.provider, live)
    const providers: Providers = {
      schemes: {
        network: () => mdes,
        named: name => (name === THIRD_PARTY ? theirs : mdes),
        thirdParty: ({ type, contract = CONTRACT }) =>
          type === 'THIRD_PARTY_1' && contract === CONTRACT ? { contract, provider: theirs } : undefined,
      },
      signingKey,
    }
    const networks = openNetworks(providers)
    begun.deps = {
      settings,
      catalogue: CATALOGUE,
      queues,
      ring: vault.ring,
      directory,
      clock,
      metrics,
      log,
      announcer,
      captureUse: { note: () => {} },
      progress: { note: () => {} },
      dropped: { note: () => {} },
      keyReaders: { note: () => {} },
      onUngranted: () => {},
      onUnproved: () => {},
      handlers,
      cards: CARD_QUESTIONS,
      ...storeAndSets(mortalStore(vault.store, live), networks),
      networks,
      providers,
    }
    return begun
  }
  let running = begin()
  const resultOf = (id: string) =>
    told
      .filter((one): one is Result => one.type === 'result' && one.receipt_id === id)
      .sort((a, b) => b.revision - a.revision)[0]
  const never = new AbortController().signal

  const openRows = async () => JSON.stringify(await storedSchemes.listOpen(vault.store, 10))

  /** Publishes outbox rows that weren't published at once. */
  async function sweepOutbox(): Promise<void> {
    const { clientId } = credentials.signingKey
    const rows = await outbox.take(vault.store, clientId, null, Date.now() + 60_000, 1_000)
    const seen = new Set(told.map(one => one.result_id))
    for (const row of rows) {
      if (seen.has(row.resultId)) continue
      const read = await bodyOfRow(row, {
        ...storeAndSets(vault.store, running.deps.networks),
        directory,
        handlers,
        catalogue: CATALOGUE,
        ring: vault.ring,
        onUnproved: (kind, id) => assert.fail(`${kind} ${id} is unproved`),
      })
      if (typeof read === 'object') told.push(JSON.parse(read.body) as Result)
    }
    await outbox.markSent(
      vault.store,
      rows.map(row => row.outboxId),
    )
  }

  async function run(job: ReceivedJob, attemptsMax = 60): Promise<void> {
    let current = { ...job }
    let last = ''
    for (let n = 0; n < attemptsMax; n += 1) {
      const disposition = await runJob(current, never, running.deps)
      if ('done' in disposition || 'failed' in disposition) return
      if ('retryInMs' in disposition) current = { ...current, attempt: current.attempt + 1 }
      last = JSON.stringify(disposition)
      wait('deferMs' in disposition ? disposition.deferMs : disposition.retryInMs)
      await workDue(running.deps)
    }
    throw new Error(`a job never ended: ${last}, ${await openRows()}`)
  }

  const world: World = {
    network,
    thirdParty,
    told,
    queued,
    resultOf,
    get deps() {
      return running.deps
    },
    wait,
    job(
      kind,
      request,
      { jti = randomUUID(), block, sequence, expiresInMs, resultColumns, roles = ROLES, bySystem = false } = {},
    ) {
      const { signingKey: own, userId, entityId } = credentials
      const signing = bySystem ? gatewayKey : own
      const iat = Math.floor(clock() / 1000)
      const claims = Claims.parse({
        iss: signing.clientId,
        aud: audience,
        sub: userId,
        entity_id: entityId,
        iat,
        jti,
        kind,
        request,
        roles,
        ...(bySystem ? { client_id: own.clientId } : {}),
        ...(sequence === undefined ? {} : { sequence }),
        ...(resultColumns ? { optional: { result_columns: true } } : {}),
        ...(expiresInMs === undefined ? {} : { exp: iat + expiresInMs / 1000 }),
      })
      const id = jobId(own.clientId, jti)
      const jws = sign(claims, signing)
      const envelope = envelopeDigest(jws).toString('base64url')
      return {
        ...received(id, { jws, ...(block === undefined ? {} : { block }) }),
        jti,
        receiptId: receiptId(own.clientId, jti),
        envelope,
      }
    },
    attempt: job => runJob(job, never, running.deps),
    async run(job) {
      await run(job)
      const result = resultOf(job.receiptId)
      if (!result) throw new Error('a job ended without a result')
      return result
    },
    ask: (kind, request, options) => world.run(world.job(kind, request, options)),
    async calm() {
      for (let idle = 0, round = 0; idle < 3; round += 1) {
        if (round > 300) throw new Error(`it never calms down: ${await openRows()}`)
        wait(30_000)
        const rows = await workDue(running.deps)
        const notices = await workNotices(running.deps)
        await queueOwed(running.deps)
        const jobs = queued.splice(0)
        for (const job of jobs) await run(job)
        idle = rows + notices + jobs.length === 0 ? idle + 1 : 0
      }
      await sweepOutbox()
    },
    dieAt: n => {
      running.left = n
    },
    isDead: () => running.left < 0,
    revive: () => {
      running = begin()
    },
    async cardOf(cardNumber, more = {}) {
      const key = credentials.captureKeys.jwe
      if (!key) throw new Error('these credentials hold no JWE key')
      const captureTime = new Date(clock()).toISOString()
      const card = { cardNumber, expiryMonth: 12, expiryYear: 2031, captureTime, ...more }
      return { encrypted_card: await encryptCard(card, key), public_key_alias: key.alias }
    },
  }
  return world
}

function mortalStore(store: Store, live: () => void): Store {
  const mortal = (db: Db): Db => ({
    query: async <R>(statement: Statement) => {
      live()
      return db.query<R>(statement)
    },
  })
  return {
    ...store,
    ...mortal(store),
    transaction: (work, options) =>
      store.transaction(async db => {
        live()
        const result = await work(mortal(db))
        live()
        return result
      }, options),
  }
}

/** Checks before a call, and after its answer, whether the process has died. */
function mortalNetwork(provider: SchemeProvider, live: () => void): SchemeProvider {
  const mortal =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      live()
      const answer = await call(...args)
      live()
      return answer
    }
  return {
    name: provider.name,
    provision: mortal(provider.provision),
    suspend: mortal(provider.suspend),
    resume: mortal(provider.resume),
    delete: mortal(provider.delete),
    get: mortal(provider.get),
    find: mortal(provider.find),
    close: provider.close,
  }
}

/** The sender of a queued job. */
export function issuerOf(job: ReceivedJob): string {
  const peeked = peek((job.data as { jws: string }).jws)
  return typeof peeked === 'string' ? peeked : peeked.iss
}
