// Scheme tokens of a whole file: provisioned, suspended and deleted by chunks, against a network with a limited rate.
// Workers and the network are killed meanwhile; no scheme token is lost or made twice.
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeScope } from '../../../cli/open/make-scope.ts'
import type { Client } from '../../../producers/client.ts'
import type { MigrateOptions } from '../../../producers/migrate/options.ts'
import { migrate } from '../../../producers/migrate/run.ts'
import { tokenBatch } from '../../../producers/token-batch.ts'
import type { RecordKind } from '../../../src/job/catalogue.ts'
import { type Claims, type JobData, peek, sign } from '../../../src/job/envelope/envelope.ts'
import type { RecordResult } from '../../../src/job/outcome.ts'
import { openLog } from '../../../src/log.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import { childrenRunning, kill9 } from '../../chaos/bundle.ts'
import { numberedPan } from '../../scheme/bundle.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { type Networked, openNetworked } from './bundle-network.ts'

const CARDS = 160
const INELIGIBLE = '5100000000000024'

describeStore('a batch of scheme tokens', engine => {
  let networked: Networked
  let client: Client
  let ids: string[]
  beforeAll(async () => {
    networked = await openNetworked(engine, { rate: 200, latencyMs: 10 })
    await networked.installation.startWorkers()
    client = await networked.installation.connect()
  })
  afterAll(() => networked?.close())

  async function send(
    recordKind: RecordKind,
    requests: readonly Record<string, unknown>[],
    batchId: string = randomUUID(),
    tokenScope = networked.installation.scope,
  ): Promise<RecordResult[]> {
    const captureKey = networked.installation.credentials.captureKeys.jwe
    if (!captureKey) throw new Error('these credentials hold no JWE key')
    const plan = { batchId, recordKind, tokenScope, acceptedAt: Math.floor(Date.now() / 1000), captureKey }
    const lines = requests.map((request, index) => JSON.stringify({ line: index + 2, request }))
    const ask = await tokenBatch(client.clientId, plan, { lines, number: 0 })
    if ('refused' in ask) throw new Error(`refused: ${ask.reason}`)
    const { request, jti, block } = ask
    const { records, error } = await client.call('token-batch', request, { jti, block })
    if (!records) throw new Error(JSON.stringify(error))
    return records
  }
  const cardOf = (cardNumber: string) => ({ card: { cardNumber, expiryMonth: 12, expiryYear: 2031 } })
  const actions = (action: string) => ids.map(id => ({ id, action }))
  const countOf = (records: readonly RecordResult[]) =>
    Object.fromEntries(Object.entries(Object.groupBy(records, ({ outcome }) => outcome)).map(([k, v]) => [k, v.length]))

  it('is provisioned once each, though workers and network are killed in the midst of it', async () => {
    const made = await send(
      'token-create',
      Array.from({ length: CARDS }, (_, index) => cardOf(numberedPan(index + 1))),
    )
    ids = made.map(record => String(record.reuse_token))
    const { simulator } = networked
    const batchId = randomUUID()
    const sent = send('scheme-token', actions('ACTIVATE'), batchId)
    await until(async () => (await simulator.stats()).tokens.all > 20)
    await simulator.kill9()
    kill9(childrenRunning('worker-process'))
    await simulator.restart()
    await until(async () => (await simulator.stats()).tokens.all > 60)
    kill9(childrenRunning('worker-process'))
    expect(countOf(await sent)).toEqual({ UPDATED: CARDS })
    expect(await simulator.stats()).toMatchObject({
      tokens: { all: CARDS, live: CARDS },
      tasksWithSeveralTokens: 0,
      cardsWithSeveralLiveTokens: 0,
    })
    expect(countOf(await send('scheme-token', actions('ACTIVATE'), batchId))).toEqual({ UPDATED: CARDS })
    expect(countOf(await send('scheme-token', actions('ACTIVATE')))).toEqual({ UNCHANGED: CARDS })
    expect((await simulator.stats()).tokens.all).toBe(CARDS)
  })

  it('is suspended, and deleted until the network has confirmed it', async () => {
    expect(countOf(await send('scheme-token', actions('SUSPEND')))).toEqual({ UPDATED: CARDS })
    expect((await networked.simulator.tokens()).every(({ state }) => state === 'SUSPENDED')).toBe(true)
    expect(countOf(await send('scheme-token', actions('DELETE')))).toEqual({ UPDATED: CARDS })
    await until(async () => (await networked.simulator.stats()).tokens.live === 0)
  })

  it('names the facet that failed, record by record', async () => {
    const [bad] = await send('token-create', [cardOf(INELIGIBLE)])
    const [first, second, third] = await send('scheme-token', [
      { id: bad?.reuse_token, action: 'ACTIVATE' },
      { id: ids[0], action: 'SUSPEND' },
      { id: `t${'0'.repeat(26)}`, action: 'ACTIVATE' },
    ])
    expect(first).toMatchObject({ outcome: 'REJECTED', reason: 'scheme_card_ineligible', failed_facet: 'scheme_token' })
    expect(second).toMatchObject({ outcome: 'REJECTED', reason: 'scheme_token_absent', failed_facet: 'scheme_token' })
    expect(third).toMatchObject({ outcome: 'REJECTED', code: 404, reason: 'token_not_found' })
    const [update] = await send('token-update', [{ id: ids[0], expiry_year: 2035, scheme_token_action: 'ACTIVATE' }])
    expect(update).toMatchObject({ outcome: 'UPDATED', expiry_year: 2035 })
  })

  it('comes by itself with new tokens of a scope that asks for it', async () => {
    const { tokenScope } = await makeScope(networked.installation.vault, {
      entityId: ENTITY,
      par: true,
      networkTokens: true,
      requestor: 'MERCHANT',
      binDigits: 8,
      autoProvision: true,
    })
    const { live } = (await networked.simulator.stats()).tokens
    const cards = Array.from({ length: 40 }, (_, index) => cardOf(numberedPan(1_000 + index)))
    const known = await send('token-create', cards.slice(0, 3), randomUUID(), tokenScope)
    expect(countOf(known)).toEqual({ CREATED: 3 })
    const all = await send('token-create', [...cards, { ...cards[5] }], randomUUID(), tokenScope)
    expect(countOf(all)).toEqual({ CREATED: 37, UNCHANGED: 3, DUPLICATE: 1 })
    await until(async () => (await networked.simulator.stats()).tokens.live === live + 40)
  })

  const run = (file: string, more: Partial<MigrateOptions> = {}, queues = networked.installation.queues) => {
    const { installation } = networked
    return migrate(
      {
        file,
        scope: installation.scope,
        ignoreUnknown: false,
        echo: [],
        dryRun: false,
        onConflict: 'update',
        onExpired: 'import',
        chunk: 2,
        inFlight: 4,
        recordKind: 'token-create',
        again: false,
        schemeTokens: true,
        ...more,
      },
      {
        queues,
        credentials: installation.credentials,
        clock: Date.now,
        log: openLog('silent'),
        stream: process.stderr,
        stop: new AbortController().signal,
      },
    )
  }

  it('follows the tokens of a migrated file, and its results name the facet that failed', async () => {
    const { installation } = networked
    const file = join(installation.dataDir, 'cards.csv')
    const bad = '5100000000000009'
    const pans = [numberedPan(2_001), INELIGIBLE, bad, numberedPan(2_002), bad]
    await writeFile(file, `card_number,expiry\n${pans.map(pan => `${pan},12/31\n`).join('')}`)
    const summary = await run(file)
    expect(summary).toMatchObject({ complete: true, rows: 5 })
    const [header, ...rows] = (await readFile(summary.results, 'utf8')).trim().split('\n')
    expect(header).toMatch(/,reason,failed_facet$/)
    expect(rows.map(row => row.split(',').slice(-2).join(' '))).toEqual([
      ' ',
      'scheme_card_ineligible scheme_token',
      'pan_luhn token',
      ' ',
      'pan_luhn token',
    ])
    // The batch of the scheme tokens ends with its file, though no token was made in the last chunk.
    const { store } = installation.vault
    const { clientId } = installation.credentials.signingKey
    const find = () => batches.find(store, clientId, `${summary.batchId}-s1`)
    await until(async () => (await find())?.finishedAt != null)
    expect(await find()).toMatchObject({ chunksDone: 3, extentChunks: 3, rowsDone: 4 })
  })

  it('follows the tokens of chunks that an earlier run queued and that are answered in columns', async () => {
    const { installation } = networked
    const { queues, credentials } = installation
    const file = join(installation.dataDir, 'queued.csv')
    const pans = [numberedPan(2_201), numberedPan(2_202), INELIGIBLE, '5100000000000009']
    await writeFile(file, `card_number,expiry\n${pans.map(pan => `${pan},12/31\n`).join('')}`)
    // The queue keeps the envelope that it has: that of a run without --scheme-tokens, which asked for columns. Its answer
    // isn't the one to this run's envelope, which is sent again.
    const known = new Set<string>()
    const queued: Queues = {
      ...queues,
      add(queue, job) {
        if (known.has(job.id)) return queues.add(queue, job)
        known.add(job.id)
        const { jws, ...data } = job.data as JobData
        const { payload } = peek(jws) as Exclude<ReturnType<typeof peek>, string>
        const earlier = sign({ ...(payload as Claims), optional: { result_columns: true } }, credentials.signingKey)
        return queues.add(queue, { ...job, data: { ...data, jws: earlier } })
      },
    }
    const summary = await run(file, { batchId: 'queued' }, queued)
    expect(summary).toMatchObject({ complete: true, rows: 4 })
    const rows = (await readFile(summary.results, 'utf8')).trim().split('\n').slice(1)
    expect(rows.map(row => row.split(',').slice(-2).join(' '))).toEqual([
      ' ',
      ' ',
      'scheme_card_ineligible scheme_token',
      'pan_luhn token',
    ])
    const { clientId } = credentials.signingKey
    const find = () => batches.find(installation.vault.store, clientId, 'queued-s1')
    await until(async () => (await find())?.finishedAt != null, { what: 'the batch of the scheme tokens to end' })
    expect(await find()).toMatchObject({ chunksDone: 2, rowsDone: 3 })
  })
})
