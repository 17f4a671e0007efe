// A list that a program sends as a batch, over the queues and over HTTP: a result for each record, in order; after a crash the
// batch goes on from its checkpoint; the same list again is answered from receipts; each record takes effect once.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BatchError } from '../../../producers/batch/batch-error.ts'
import type { BatchCheckpoint, BatchRecord, Ended, SendBatch } from '../../../producers/batch/interface.ts'
import { sendBatch } from '../../../producers/batch/send-batch.ts'
import type { Client } from '../../../producers/client.ts'
import { openHttpClient } from '../../../producers/http-client/http-client.ts'
import type { HttpClient } from '../../../producers/http-client/interface.ts'
import { systemClock } from '../../../src/clock.ts'
import { SILENT } from '../../../src/logger.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type Caller, openGatewayFor } from '../gateway/bundle.ts'

type Create = BatchRecord<'token-create'>

/** Every hundredth number is wrong, and every fiftieth record repeats the one before it. */
function recordOf(from: number, index: number): Create {
  const number = testPan(from + (index % 50 === 49 ? index - 1 : index))
  const wrong = number.replace(/.$/, last => String((Number(last) + 1) % 10))
  const cardNumber = index % 100 === 98 ? wrong : number
  return {
    reference: `r-${index}`,
    card: { cardNumber, expiryMonth: 12, expiryYear: 2034, cardholderName: `HOLDER ${'ABCDE'[index % 5]}` },
  }
}

async function* listOf(from: number, size: number): AsyncGenerator<Create> {
  for (let index = 0; index < size; index += 1) yield recordOf(from, index)
}

async function all(batch: AsyncIterable<Ended<Create>>): Promise<Ended<Create>[]> {
  const ended: Ended<Create>[] = []
  for await (const one of batch) ended.push(one)
  return ended
}

const told = (ended: readonly Ended[]) =>
  ended.map(({ result }) => `${result.line} ${result.reference} ${result.outcome}`)

function countsOf(ended: readonly Ended[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { result } of ended) counts[result.outcome] = (counts[result.outcome] ?? 0) + 1
  return counts
}

describeOnRedis('a list as a batch', engine => {
  let installation: Installation
  let gateway: Caller
  let client: Client
  let http: HttpClient

  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers()
    gateway = await openGatewayFor(installation, { TOKENMILL_RESEND_SECONDS: '2' })
    client = await installation.connect({ replyTo: 'batch' })
    const { clientFile } = installation
    http = await openHttpClient({ baseUrl: gateway.url, clientFile }, { clock: systemClock, log: SILENT })
  })
  afterAll(async () => {
    http?.close()
    await gateway?.close()
    await installation?.close()
  })

  const overQueues: SendBatch = (options, records) =>
    sendBatch(options, records, {
      client,
      tokenScope: installation.scope,
      captureKey: () => installation.credentials.captureKeys.jwe,
      clock: systemClock,
    })
  const overHttp: SendBatch = (options, records) => http.batch(options, records)
  describe.each<[string, () => SendBatch, number]>([
    ['the queues', () => overQueues, 2_500],
    ['HTTP', () => overHttp, 12_500],
  ])('over %s', (way, sender, size) => {
    const from = way === 'HTTP' ? 100_000 : 0
    const options = { kind: 'token-create', batchId: `list-${way.length}` } as const

    it('yields a result for each record, in the order of the list', async () => {
      const ended = await all(sender()(options, listOf(from, size)))
      expect(ended.map(({ record }) => record)).toEqual(
        Array.from({ length: size }, (_, index) => recordOf(from, index)),
      )
      expect(ended.map(({ result }) => result.line)).toEqual(Array.from({ length: size }, (_, index) => index + 1))
      expect(ended.map(({ result }) => result.reference)).toEqual(ended.map(({ record }) => record.reference))
      expect(countsOf(ended)).toEqual({
        CREATED: size - (2 * size) / 100,
        REJECTED: size / 100,
        DUPLICATE: size / 100,
      })
    })

    it('answers the same list again from its receipts', async () => {
      const ended = await all(sender()(options, listOf(from, size)))
      expect(ended).toHaveLength(size)
      expect(countsOf(ended)['CREATED']).toBe(size - (2 * size) / 100)
    })

    it('refuses another list under the same name, and says what to do', async () => {
      const other = all(sender()(options, listOf(from + 50_000, size)))
      await expect(other).rejects.toThrow()
    })

    it('goes on from its checkpoint after each of ten crashes', async () => {
      const list = () => listOf(from + 50_000, size)
      const named = { ...options, batchId: `${options.batchId}-crashes` }
      let checkpoint: BatchCheckpoint | undefined
      let kept: Ended<Create>[] = []
      for (let crash = 0; crash < 10; crash += 1) {
        const since: Ended<Create>[] = []
        const take = (next: BatchCheckpoint) => {
          kept = [...kept, ...since.splice(0)]
          checkpoint = JSON.parse(JSON.stringify(next)) as BatchCheckpoint
        }
        let left = Math.ceil(size / 20) + crash
        for await (const one of sender()({ ...named, checkpoint, onCheckpoint: take }, list())) {
          since.push(one)
          left -= 1
          if (left === 0) break
        }
      }
      const rest: Ended<Create>[] = []
      for await (const one of sender()({ ...named, checkpoint }, list())) rest.push(one)
      const ended = [...kept, ...rest]
      expect(told(ended)).toEqual(told(await all(sender()(named, list()))))
      expect(ended.map(({ result }) => result.line)).toEqual(Array.from({ length: size }, (_, index) => index + 1))
    })

    it('refuses a checkpoint of another list', async () => {
      const checkpoint: BatchCheckpoint = {
        batchId: options.batchId,
        acceptedAt: 1,
        records: 7,
        chunks: 1,
        form: 'rows',
      }
      await expect(all(sender()({ ...options, checkpoint }, listOf(from, size)))).rejects.toThrow(BatchError)
      const named = { ...options, batchId: 'another', checkpoint }
      await expect(all(sender()(named, listOf(from, size)))).rejects.toThrow('not of another')
    })

    it('reads no further ahead than a few pieces', async () => {
      let read = 0
      async function* endless() {
        for (;;) yield recordOf(from + 80_000, read++)
      }
      let furthest = 0
      let taken = 0
      for await (const _ of sender()({ ...options, batchId: `${options.batchId}-endless`, inFlight: 2 }, endless())) {
        taken += 1
        furthest = Math.max(furthest, read - taken)
        if (taken === size) break
      }
      expect(furthest).toBeLessThanOrEqual(4 * (way === 'HTTP' ? 10_000 : 1_500))
    })

    it('throws what the list throws', async () => {
      async function* broken() {
        yield* listOf(from, 10)
        throw new RangeError('the source is gone')
      }
      await expect(all(sender()({ ...options, batchId: `${options.batchId}-broken` }, broken()))).rejects.toThrow(
        'the source is gone',
      )
    })
  })

  it('says of each member that HTTP has no row for', async () => {
    const record = { ...recordOf(0, 0), on_file: { provider: 'acme', card_id: 'k-1' } }
    const sent = all(overHttp({ kind: 'token-create', batchId: 'owners' }, [record]))
    await expect(sent).rejects.toThrow(/record 1: on_file .* can't be said over HTTP; .*send the batch over the queues/)
  })

  it('changes tokens', async () => {
    const made = await all(overQueues({ kind: 'token-create', batchId: 'to-change' }, listOf(200_000, 40)))
    const ids = made.flatMap(({ result }) => (result.outcome === 'CREATED' ? [String(result.reuse_token)] : []))
    expect(countsOf(made)).toEqual({ CREATED: 40 })
    const records = ids.map(id => ({ id, action: 'SUSPEND' as const }))
    const ended: Ended<BatchRecord<'token-lifecycle'>>[] = []
    for await (const one of overQueues({ kind: 'token-lifecycle', batchId: 'suspend' }, records)) ended.push(one)
    expect(countsOf(ended)).toEqual({ UPDATED: ids.length })
  })

  it('carries owners over the queues, and refuses a text that holds a card of the list', async () => {
    const [first, second] = [recordOf(210_000, 0), recordOf(210_000, 1)]
    const ended = await all(
      overQueues({ kind: 'token-create', batchId: 'with-owners' }, [
        { ...first, on_file: { provider: 'acme', customer_id: 'c-1', card_id: 'k-1' } },
        { ...second, reference: `order ${testPan(210_000)}` },
        { ...second, reference: `order ${testPan(210_001)}` },
      ]),
    )
    expect(ended.map(({ result }) => [result.outcome, result.reason, result.reference])).toEqual([
      ['CREATED', undefined, 'r-0'],
      ['REJECTED', 'reference_pan', undefined],
      ['REJECTED', 'reference_pan', undefined],
    ])
  })
})
