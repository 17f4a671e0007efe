// The golden vectors, run by the clients over the queues and over HTTP. The Python package runs the same files
// (test/packages/python.test.ts), and test/producers/http-client/requests.test.ts those about answers.
import { createPrivateKey, createPublicKey, type JsonWebKey } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BatchOptions, BatchRecord } from '../../producers/batch/interface.ts'
import { verifyCaptureKeys } from '../../producers/client/capture-keys.ts'
import { encryptCard } from '../../producers/client/card.ts'
import { importInstallationKey } from '../../producers/client/client-file.ts'
import type { CardToEncrypt, Client } from '../../producers/client/interface.ts'
import { openHttpClient } from '../../producers/http-client/http-client.ts'
import type { CreateToken, HttpClient } from '../../producers/http-client/interface.ts'
import { sendBatch } from '../../producers/http-client/send-batch.ts'
import { systemClock } from '../../src/clock.ts'
import { isAnswerTo, type Result, type SentJob } from '../../src/job/answer/result.ts'
import { openDelivery } from '../../src/job/answer/result-set.ts'
import type { RecordKind } from '../../src/job/choices.ts'
import { askedOf, envelopeDigest } from '../../src/job/envelope/digest.ts'
import { jobId, receiptId } from '../../src/job/envelope/ids.ts'
import { reasonIn } from '../../src/job/problem.ts'
import { SILENT } from '../../src/logger.ts'
import { openJweCard } from '../../src/vault/capture/open-card.ts'
import { jweTypeOf } from '../../src/vault/jwe-key.ts'
import { describeOnRedis } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { readVectors } from '../support/vectors.ts'
import { type Caller, openGatewayFor } from './gateway/bundle.ts'

interface Jwks {
  keys: Record<string, unknown>[]
}

const capture = readVectors<{
  audience: string
  entity_id: string
  alias: string
  now: number
  installation_keys: Jwks
  card: string
  keys: Record<string, { public_jwk: object; private_jwk: JsonWebKey; thumbprint: string; jwe: string }>
  documents: { name: string; document: object; takes: string | null }[]
}>('capture-keys')
const digests = readVectors<{
  jobs: { client_id: string; jti: string; job_id: string; receipt_id: string }[]
  envelopes: { jws: string; envelope: string }[]
  requests: { kind: string; request: Record<string, unknown>; answers: string }[]
}>('digests')
const results = readVectors<{
  client_id: string
  installation_keys: Jwks
  deliveries: { name: string; delivery: object; opens: string }[]
  job: SentJob
  answers: { name: string; result: Result; is_answer: boolean }[]
}>('results')
const idempotency = readVectors<{
  cases: { name: string; first: Asked; second: Asked; same: boolean }[]
}>('idempotency')
const { lists } = readVectors<{ lists: List[] }>('lists')
interface List {
  name: string
  kind: RecordKind
  policy?: BatchOptions['policy']
  records: BatchRecord[]
  rows?: object[]
  says?: string
}
type Asked = { card: CardToEncrypt } & Omit<CreateToken, 'card'>

const installationKeys = ({ keys }: Jwks) => new Map(keys.map(importInstallationKey))
const trust = {
  audience: capture.audience,
  entityId: capture.entity_id,
  installationKeys: installationKeys(capture.installation_keys),
}

describe('a capture key', () => {
  it.each(capture.documents)('is taken, or not: $name', async ({ document, takes }) => {
    const taken = await verifyCaptureKeys(document, trust, capture.now * 1_000).catch(() => undefined)
    expect(taken?.captureKeys.jwe?.kid ?? null).toBe(takes)
  })

  it.each(Object.entries(capture.keys))(
    'of %s opens the given card, and one that is encrypted now',
    async (_, given) => {
      const document = { keys: [given.public_jwk], openpgp: [] }
      const { captureKeys } = await verifyCaptureKeys(document, trust, capture.now * 1_000)
      const { captureTime, ...card } = JSON.parse(capture.card)
      const made = await encryptCard(card, { captureKeys }, Date.parse(captureTime))
      expect(made.public_key_alias).toBe(capture.alias)
      const privateKey = createPrivateKey({ key: given.private_jwk, format: 'jwk' })
      const type = jweTypeOf(createPublicKey(privateKey)) ?? 'jwe-rsa'
      for (const jwe of [given.jwe, made.encrypted_card]) {
        const opened = openJweCard(jwe, { alias: capture.alias, type, privateKey, kid: given.thumbprint })
        expect('reveal' in opened && opened.reveal()).toBe(capture.card)
        const header = JSON.parse(Buffer.from(jwe.split('.')[0] ?? '', 'base64url').toString())
        expect(header).toMatchObject({ enc: 'A256GCM', kid: given.thumbprint })
      }
    },
  )
})

describe('a client over the queues', () => {
  it.each(digests.jobs)('names the job of $jti', ({ client_id: client, jti, job_id: job, receipt_id: receipt }) => {
    expect([jobId(client, jti), receiptId(client, jti)]).toEqual([job, receipt])
  })

  it.each(digests.envelopes)('names an envelope', ({ jws, envelope }) => {
    expect(envelopeDigest(jws).toString('base64url')).toBe(envelope)
  })

  it.each(digests.requests)('names what a $kind asks for', ({ kind, request, answers }) => {
    expect(askedOf(kind, request).digest()?.toString('base64url')).toBe(answers)
  })

  it.each(results.deliveries)('opens what the installation signed for it: $name', ({ delivery, opens }) => {
    const opened = openDelivery(delivery, results.client_id, installationKeys(results.installation_keys))
    expect(opened.refused ?? 'read').toBe(opens)
  })

  it.each(results.answers)('takes only the answer to its job: $name', ({ result, is_answer: isAnswer }) => {
    expect(isAnswerTo(result, results.job)).toBe(isAnswer)
  })
})

describe('a list over HTTP', () => {
  it.each(lists)('is sent in these rows, or refused: $name', async ({ kind, policy, records, rows, says }) => {
    const sent: { id: string | undefined; body: unknown }[] = []
    const enough = new Error('enough')
    const sender = {
      submitBatch: async (body: unknown, { batch_id: id }: { batch_id?: string | undefined }) => {
        sent.push({ id, body })
        throw enough
      },
    } as unknown as HttpClient
    const options = { kind, policy, batchId: 'list' }
    const batch = sendBatch(options, records, { sender, tokenScope: undefined, now: 0 })
    await expect(batch.next()).rejects.toThrow(says ?? enough.message)
    const lines = (rows ?? []).map(row => `${JSON.stringify(row)}\n`)
    expect(sent).toEqual(rows ? [{ id: 'list-0', body: lines.join('') }] : [])
  })
})

describeOnRedis('two requests under one key', engine => {
  let installation: Installation
  let gateway: Caller
  let http: HttpClient
  let queues: Client

  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers()
    gateway = await openGatewayFor(installation)
    const options = { baseUrl: gateway.url, clientFile: installation.clientFile, timeoutMs: 200_000 }
    http = await openHttpClient(options, { clock: systemClock, log: SILENT })
    queues = await installation.connect({ replyTo: 'vectors' })
  })
  afterAll(async () => {
    http?.close()
    await gateway?.close()
    await installation?.close()
  })

  /** The token, or the code of the refusal. */
  async function overHttp(request: Asked, key: string): Promise<unknown> {
    return http.createToken(request, { idempotencyKey: key }).then(
      made => made.reuse_token,
      error => Object.values<{ code: string }>(error.details)[0]?.code,
    )
  }
  async function overQueues({ card, ...rest }: Asked, key: string): Promise<unknown> {
    const encrypted = await queues.encryptCard(card)
    const request = { token_scope: installation.scope, ...rest, ...encrypted }
    const { record, error } = await queues.call('token-create', request, { jti: key })
    return error ? reasonIn(error).reason : record?.['reuse_token']
  }

  it.each(idempotency.cases)('are the same over HTTP, or not: $name', async ({ name, first, second, same }) => {
    const token = await overHttp(first, `http-${name}`.replaceAll(' ', '-'))
    expect(await overHttp(second, `http-${name}`.replaceAll(' ', '-'))).toBe(same ? token : 'jti_reused')
  })

  it.each(idempotency.cases)('are the same over the queues, or not: $name', async ({ name, first, second, same }) => {
    const token = await overQueues(first, `queues-${name}`.replaceAll(' ', '-'))
    expect(await overQueues(second, `queues-${name}`.replaceAll(' ', '-'))).toBe(same ? token : 'jti_reused')
  })
})
