// Results in sets say what the same results say one by one, whichever way they come, and each comes once.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../../bin/sample/pan.ts'
import type { Client } from '../../../producers/client.ts'
import { signAsk } from '../../../producers/envelope.ts'
import { isRefusal } from '../../../src/errors.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import { openDelivery } from '../../../src/job/answer/result-set.ts'
import { resultsQueue } from '../../../src/job/catalogue.ts'
import type { Kind } from '../../../src/job/composition.ts'
import { isSetDeliveryId } from '../../../src/job/envelope/ids.ts'
import { describeEngines } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'

const JOBS = 150

describeEngines('results of a sender that reads sets', engine => {
  let installation: Installation
  let encrypting: Client
  beforeAll(async () => {
    installation = await openInstallation(engine)
    encrypting = await installation.connect({ replyTo: 'encrypting' })
  })
  afterAll(() => installation?.close())

  /** Creates, refused creates, refused actions and refused envelopes. */
  async function requestOf(index: number): Promise<[Kind, Record<string, unknown>]> {
    const token_scope = installation.scope
    if (index % 5 === 1) return ['token-lifecycle', { id: 't00000000000000000000000000', action: 'SUSPEND' }]
    if (index % 5 === 2) return ['token-lifecycle', { id: 't00000000000000000000000000', action: 'WHATEVER' }]
    const number = panOf(index, 57)
    const cardNumber = index % 5 === 3 ? `${number.slice(0, -1)}${(Number(number.at(-1)) + 1) % 10}` : number
    const card = { cardNumber, expiryMonth: 1 + (index % 12), expiryYear: 2031, cardholderName: 'ÄNNE "O\\' }
    return ['token-create', { token_scope, ...(await encrypting.encryptCard(card)) }]
  }
  async function send(replyTo: string, resultSets: boolean): Promise<void> {
    for (let index = 0; index < JOBS; index += 1) {
      const [kind, request] = await requestOf(index)
      const options = { jti: `${replyTo}-${index}`, reference: `Größe ${index}`, replyTo, resultSets }
      const signed = await signAsk(installation.credentials, { kind, request }, options, Date.now())
      if (isRefusal(signed)) throw new Error(signed.reason)
      await installation.queues.add(kind, { id: signed.id, data: signed.data })
    }
  }
  /** What a result says, without what differs between two jobs with the same request. */
  function said({ jti, error, ...rest }: Result): string {
    const own = { result_id: '', receipt_id: '', envelope: '', answers: '', accepted_at: '', completed_at: '' }
    const common = { ...rest, ...own, revision: 0, attempt: 0 }
    return JSON.stringify([jti.replace(/^[a-z]+/, ''), common, error && { ...error, timestamp: 0 }])
  }

  /**
   * A result of each job that lies on the queue. A host that is too busy to renew a job's lock has it worked again: a job that
   * was answered without a receipt is then answered once more.
   */
  async function delivered(replyTo: string): Promise<{ sets: number; results: Result[] }> {
    const { clientId } = installation.credentials.signingKey
    const queue = resultsQueue(clientId, replyTo)
    const read = async () => {
      const jobs = await installation.queues.list(queue, ['waiting'], 0, 10 * JOBS)
      const results = jobs.flatMap(({ data }) => {
        const opened = openDelivery(data, clientId, installation.credentials.installationKeys)
        return opened.refused === undefined ? (opened.results as Result[]) : []
      })
      const ofJobs = [...new Map(results.map(result => [result.jti, result])).values()]
      return { sets: jobs.filter(({ id }) => isSetDeliveryId(id)).length, results: ofJobs }
    }
    await until(async () => (await read()).results.length >= JOBS, { what: 'all results' })
    return read()
  }

  it('come in fewer deliveries and are the same', async () => {
    await send('sets', true)
    await send('singles', false)
    const workers = await installation.openWorkers({ roles: ['interactive'] })
    const inSets = await delivered('sets')
    const single = await delivered('singles')
    await workers.close()
    expect(single.sets).toBe(0)
    expect(inSets.sets).toBeGreaterThan(0)
    expect(inSets.results).toHaveLength(JOBS)
    expect(inSets.results.map(said).sort()).toEqual(single.results.map(said).sort())
    const reader = await installation.connect({ replyTo: 'sets' })
    const told = new Set<string>()
    reader.results(delivery => {
      if (delivery.type === 'result') told.add(delivery.jti)
    })
    await until(() => told.size === JOBS)
    expect([...told].sort()).toEqual(inSets.results.map(({ jti }) => jti).sort())
    await until(async () => {
      const { waiting, active, delayed } = await installation.queues.depth(
        resultsQueue(installation.credentials.signingKey.clientId, 'sets'),
      )
      return waiting + active + delayed === 0
    })
    await reader.close()
  })

  it('that waited in the outbox come one by one, and once', async () => {
    const { store } = installation.vault
    await store.query({ text: `update tokenmill.outbox set state = 'NEW' where reply_to = 'sets'` })
    const workers = await installation.openWorkers({ roles: ['interactive'] })
    const again = await delivered('sets')
    await workers.close()
    expect(again.sets).toBe(0)
    expect(new Set(again.results.map(({ result_id }) => result_id)).size).toBe(JOBS)
  })
})
