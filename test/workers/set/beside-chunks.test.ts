// Sets of single jobs and chunks of batches that come to the same cards and tokens: nobody waits for each other in a
// circle, each card has one token, and no more guesses are counted than are permitted.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../../bin/sample/pan.ts'
import { tokenBatch } from '../../../producers/token-batch.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import type { RecordKind } from '../../../src/job/catalogue.ts'
import { passesLuhn } from '../../../src/token/pan.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { openWorld, type World } from '../provider/bundle.ts'

const ROUNDS = 6
const CARDS = 24

describeStore('single jobs', engine => {
  let installation: Installation
  let worlds: [World, World]
  beforeAll(async () => {
    installation = await openInstallation(engine)
    const first = await openWorld(installation)
    worlds = [first, await openWorld(installation, { beside: first })]
  })
  afterAll(async () => {
    await installation?.close()
  })

  const world = (index: number) => worlds[index % 2] as World
  const create = async (pan: string, expiryMonth: number) =>
    worlds[0].job('token-create', {
      token_scope: installation.scope,
      ...(await worlds[0].cardOf(pan, { expiryMonth, expiryYear: 2031 })),
    })
  async function chunk(recordKind: RecordKind, requests: readonly unknown[]) {
    const captureKey = installation.credentials.captureKeys.jwe
    if (!captureKey) throw new Error('these credentials hold no JWE key')
    const acceptedAt = Math.floor(Date.now() / 1000)
    const plan = { batchId: randomUUID(), recordKind, tokenScope: installation.scope, acceptedAt, captureKey }
    const lines = requests.map((request, index) => JSON.stringify({ line: index + 2, request }))
    const ask = await tokenBatch(installation.credentials.signingKey.clientId, plan, { lines, number: 0 })
    if ('refused' in ask) throw new Error(`refused: ${ask.reason}`)
    const { request, jti, block } = ask
    return worlds[0].job('token-batch', request as Record<string, unknown>, { jti, block })
  }
  const deadlocks = async () => {
    await installation.vault.store.query({ text: 'select pg_stat_force_next_flush()' })
    const { rows } = await installation.vault.store.query<{ n: number }>({
      text: 'select deadlocks::int as n from pg_stat_database where datname = current_database()',
    })
    return rows[0]?.n
  }
  async function written() {
    const counts = await Promise.all(worlds.map(({ deps }) => deps.metrics.setJobs.get()))
    const together = counts.flatMap(({ values }) => values).filter(({ labels }) => labels.written === 'together')
    return together.reduce((sum, { value }) => sum + value, 0)
  }

  it('and chunks on the same cards and tokens all succeed, without a deadlock', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const pans = Array.from({ length: CARDS }, (_, index) => panOf(round * CARDS + index, 53))
      const card = (cardNumber: string, expiryMonth: number) => ({
        card: { cardNumber, expiryMonth, expiryYear: 2031 },
      })
      const known = await Promise.all(pans.slice(0, CARDS / 2).map(async pan => world(0).run(await create(pan, 12))))
      const ids = known.map(({ record }) => String(record?.['reuse_token']))
      const jobs = await Promise.all([
        chunk(
          'token-create',
          pans.map(pan => card(pan, 1 + (round % 12))),
        ),
        chunk(
          'token-create',
          pans.toReversed().map(pan => card(pan, 2)),
        ),
        chunk(
          'token-lifecycle',
          ids.map(id => ({ id, action: 'SUSPEND' })),
        ),
        ...pans.map(pan => create(pan, 3)),
        ...pans.map(pan => create(pan, 4)),
        ...ids.map(id => worlds[0].job('token-update', { id, card_holder_name: `ROUND ${round}` })),
        ...ids.map(id => worlds[0].job('token-lifecycle', { id, action: round % 2 ? 'ACTIVATE' : 'SUSPEND' })),
      ])
      const results: Result[] = await Promise.all(jobs.map((job, index) => world(index).run(job)))
      expect(results.map(({ status }) => status)).toEqual(jobs.map(() => 'SUCCEEDED'))
      const { rows } = await installation.vault.store.query<{ tokens: number; cards: number }>({
        text: `select (select count(*)::int from tokenmill.token where token_scope = $1) as tokens,
  (select count(*)::int from tokenmill.card) as cards`,
        values: [installation.scope],
      })
      expect(rows).toEqual([{ tokens: (round + 1) * CARDS, cards: (round + 1) * CARDS }])
    }
    expect(await deadlocks()).toBe(0)
    expect(await written()).toBeGreaterThan(ROUNDS)
  })

  it('that could be a guess too many in their set are refused, and no more are counted than are permitted', async () => {
    const guessesMax = 10
    for (const { deps } of worlds) deps.settings = { ...deps.settings, guessesMax }
    // The same digits are shown of each of these cards.
    const pans = Array.from({ length: 10_000 }, (_, index) => `41111187${String(index).padStart(4, '0')}4242`)
    const jobs = await Promise.all(
      pans
        .filter(passesLuhn)
        .slice(0, 40)
        .map(pan => create(pan, 12)),
    )
    const results = await Promise.all(jobs.map((job, index) => world(index).run(job)))
    expect(results.filter(({ status }) => status === 'SUCCEEDED')).toHaveLength(guessesMax)
    const refused = results.filter(({ status }) => status === 'FAILED')
    expect(refused).toHaveLength(jobs.length - guessesMax)
    expect(refused.every(({ error }) => JSON.stringify(error?.details).includes('guesses'))).toBe(true)
    const { rows } = await installation.vault.store.query({
      text: `select misses from tokenmill.guess where digits = '411111874242'`,
    })
    expect(rows).toEqual([{ misses: guessesMax }])
  })
})
