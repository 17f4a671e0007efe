// Third-party tokens in chunks and over HTTP, with workers, gateway and the simulated third party.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../../producers/client.ts'
import { tokenBatch } from '../../../producers/token-batch.ts'
import type { RecordResult } from '../../../src/job/outcome.ts'
import { CONTRACT } from '../../../src/simulate/scheme/keys.ts'
import { childrenRunning, kill9 } from '../../chaos/bundle.ts'
import { numberedPan, outcomePan } from '../../scheme/bundle.ts'
import { describeStore } from '../../support/engines.ts'
import { until } from '../../support/until.ts'
import { type Networked, openNetworked } from './bundle-network.ts'

const CARDS = 80
const DECLINED = '4000000000000051'

describeStore('a batch of third-party tokens', engine => {
  let networked: Networked
  let client: Client
  beforeAll(async () => {
    networked = await openNetworked(engine, { rate: 400, latencyMs: 10, timeoutMs: 1_000 })
    await networked.installation.startWorkers()
    client = await networked.installation.connect()
  })
  afterAll(() => networked?.close())

  const recordOf = (cardNumber: string) => ({
    card: { cardNumber, expiryMonth: 12, expiryYear: 2031 },
    reuse_token_type: 'THIRD_PARTY_1',
    reuse_token_details: { expiry_month: 12, expiry_year: 2031 },
    token_context: { payment_provider_contract: CONTRACT },
  })
  const own = (cardNumber: string) => ({ card: { cardNumber, expiryMonth: 12, expiryYear: 2031 } })

  async function send(requests: readonly object[], more: { batchId?: string; dryRun?: boolean } = {}) {
    const { installation } = networked
    const captureKey = installation.credentials.captureKeys.jwe
    if (!captureKey) throw new Error('these credentials hold no JWE key')
    const { dryRun = false, batchId = dryRun ? `dry-${randomUUID()}` : randomUUID() } = more
    const plan = {
      batchId,
      recordKind: 'token-create' as const,
      tokenScope: installation.scope,
      captureKey,
      acceptedAt: Math.floor(Date.now() / 1000),
      ...(dryRun ? { dryRun } : {}),
    }
    const lines = requests.map((request, index) => JSON.stringify({ line: index + 2, request }))
    const ask = await tokenBatch(client.clientId, plan, { lines, number: 0 })
    if ('refused' in ask) throw new Error(`refused: ${ask.reason}`)
    const { request, jti, block } = ask
    const { records, error } = await client.call('token-batch', request, { jti, block })
    if (!records) throw new Error(JSON.stringify(error))
    return records
  }
  const outcomes = (records: readonly RecordResult[]) =>
    records.map(({ outcome, reason = '' }) => `${outcome} ${reason}`)
  const live = async () => (await networked.simulator.stats()).thirdParty

  it('is made once each, though workers and third party are killed in the midst of it', async () => {
    const requests = Array.from({ length: CARDS }, (_, index) => recordOf(numberedPan(index + 1)))
    const batchId = randomUUID()
    const sent = send(requests, { batchId })
    await until(async () => (await live()).all > 10)
    await networked.simulator.kill9()
    kill9(childrenRunning('worker-process'))
    await networked.simulator.restart()
    const records = await sent
    expect(new Set(outcomes(records))).toEqual(new Set(['CREATED ']))
    expect(new Set(records.map(record => record.reuse_token)).size).toBe(CARDS)
    expect(records[0]?.reuse_token).toMatch(/^ext_/)
    expect(await live()).toEqual({ all: CARDS, live: CARDS, cardsWithSeveralLiveTokens: 0 })
    expect(new Set(outcomes(await send(requests)))).toEqual(new Set(['UNCHANGED ']))
    expect((await live()).all).toBe(CARDS)
  })

  it('asks once for a card that comes twice, and says which card was declined', async () => {
    const { all } = await live()
    const twice = numberedPan(1_001)
    const records = await send([
      recordOf(twice),
      recordOf(DECLINED),
      recordOf(twice),
      own(twice),
      { ...recordOf(numberedPan(1_002)), token_context: { payment_provider_contract: randomUUID() } },
    ])
    expect(outcomes(records)).toEqual([
      'CREATED ',
      'REJECTED third_party_card_declined',
      'DUPLICATE ',
      'CREATED ',
      'REJECTED third_party_unavailable',
    ])
    expect(records[2]?.reuse_token).toBe(records[0]?.reuse_token)
    expect((await live()).all).toBe(all + 1)
  })

  it('asks nobody in a dry run', async () => {
    const { all } = await live()
    expect(outcomes(await send([recordOf(numberedPan(1_100))], { dryRun: true }))).toEqual(['CREATED '])
    expect((await live()).all).toBe(all)
  })

  it('finds out what came of answers that were lost, before or after their effect', async () => {
    const { all } = await live()
    expect(outcomes(await send([2, 3].map(number => recordOf(outcomePan(number)))))).toEqual(['CREATED ', 'CREATED '])
    expect(await live()).toMatchObject({ all: all + 2, cardsWithSeveralLiveTokens: 0 })
  })
})
