// Each method of the client over HTTP, against a real gateway and real workers.
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { RefusedError } from '../../../producers/client/errors.ts'
import { openHttpClient } from '../../../producers/http-client/http-client.ts'
import type { HttpError } from '../../../producers/http-client/http-error.ts'
import type { HttpClient, HttpOptions } from '../../../producers/http-client/interface.ts'
import { systemClock } from '../../../src/clock.ts'
import { SILENT } from '../../../src/logger.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type Caller, openGatewayFor } from '../gateway/bundle.ts'

const card = (index: number) => ({ cardNumber: testPan(index), expiryMonth: 12, expiryYear: 2034 })

describeStore('the client over HTTP', engine => {
  let installation: Installation
  let gateway: Caller
  let client: HttpClient
  const opened: HttpClient[] = []

  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers()
    gateway = await openGatewayFor(installation)
    client = await open()
  })
  afterAll(async () => {
    for (const one of opened) one.close()
    await gateway?.close()
    await installation?.close()
  })

  async function open(options: HttpOptions = {}): Promise<HttpClient> {
    const where = { baseUrl: gateway.url, clientFile: installation.clientFile, timeoutMs: 200_000 }
    const made = await openHttpClient({ ...where, ...options }, { clock: systemClock, log: SILENT })
    opened.push(made)
    return made
  }
  async function create(index: number, idempotencyKey?: string): Promise<string> {
    const made = await client.createToken({ card: card(index) }, { idempotencyKey })
    return String(made.reuse_token)
  }
  const refusal = (promise: Promise<unknown>) =>
    promise.then(
      () => undefined,
      (error: unknown) => error as HttpError,
    )

  it('makes, reads, changes, suspends, activates and deletes a token', async () => {
    const id = await create(1)
    const token = await client.getToken(id)
    expect(token).toMatchObject({ reuse_token: id, token_status: 'ACTIVE', expiry_year: 2034 })
    const changed = await client.updateToken(id, { card: { ...card(1), expiryYear: 2035 } })
    expect(changed).toMatchObject({ token_status: 'ACTIVE', expiry_year: 2035 })
    await client.suspendToken(id)
    expect((await client.getToken(id)).token_status).toBe('SUSPENDED')
    await client.activateToken(id)
    expect((await client.getToken(id)).token_status).toBe('ACTIVE')
    await client.deleteToken(id)
    expect(await refusal(client.getToken(id))).toMatchObject({ status: 404 })
  })

  it('makes one token of a request that is repeated under its key', async () => {
    expect(await create(2, 'order-2')).toBe(await create(2, 'order-2'))
    expect(await refusal(client.createToken({ card: card(3) }, { idempotencyKey: 'order-2' }))).toMatchObject({
      status: 400,
      details: { 'params.idempotency-key': { code: 'jti_reused' } },
    })
  })

  it('signs in by the client’s own key where its file has no API key', async () => {
    const file = JSON.parse(await readFile(installation.clientFile, 'utf8'))
    const { api_key: _, ...rest } = file
    const folder = new URL('.', `file://${installation.clientFile}`)
    const read = async (name: string) => JSON.parse(await readFile(new URL(name, folder), 'utf8'))
    const signing = await open({
      credentials: {
        file: rest,
        signingKey: await read(file.signing_key_file),
        captureKeys: { jwe: await read(file.capture_keys.jwe.public_key_file) },
      },
    })
    const { reuse_token: id } = await signing.createToken({ card: card(4) })
    expect(await signing.getToken(String(id))).toMatchObject({ reuse_token: id })
  })

  it('waits for a write that the gateway answers at once, here or by its id', async () => {
    let receipt = ''
    const onAccepted = (receiptId: string) => {
      receipt = receiptId
    }
    const made = await client.createToken({ card: card(5) }, { respondAsync: true, onAccepted })
    expect(await client.operationEnd(receipt)).toMatchObject({ status: 'SUCCEEDED', record: made })
    const wrong = client.createToken({ card: { ...card(6), cardNumber: '4111111111111112' } }, { respondAsync: true })
    expect(await refusal(wrong)).toMatchObject({
      status: 400,
      details: { 'body.encrypted_card': { code: 'pan_luhn' } },
    })
  })

  it('sends no card in clear, and no CVV', async () => {
    const sent: string[] = []
    const spying: typeof fetch = (url, init) => {
      sent.push(String(init?.body ?? ''))
      return fetch(url, init)
    }
    const watched = await open({ fetch: spying })
    await watched.createToken({ card: card(7) })
    expect(sent.filter(body => body.includes('encrypted_card'))).toHaveLength(1)
    expect(sent.join('')).not.toContain(testPan(7))
    const withCvv = { ...card(7), cvv: '123' }
    await expect(watched.createToken({ card: withCvv })).rejects.toBeInstanceOf(RefusedError)
  })

  it('adds owners, lists them page by page, and finds tokens by them', async () => {
    const id = await create(8)
    const owner = { provider: 'acme', customer_id: 'c-1', card_id: 'k-1' }
    expect(await client.putOwner(id, owner)).toMatchObject({ reference_outcome: 'ADDED' })
    const listed = []
    for await (const one of client.owners(id)) listed.push(one)
    expect(listed).toEqual([owner])
    const absent = { provider: 'acme', card_id: 'k-2' }
    expect(await client.lookUpOwners({ token_scope: installation.scope, references: [owner, absent] })).toMatchObject([
      { found: true, reuse_token: id },
      { found: false },
    ])
  })

  it('submits a batch, waits for its end and streams its results', async () => {
    const rows = async function* () {
      for (let row = 0; row < 40; row += 1)
        yield `${JSON.stringify({ reference: `r-${row}`, card_number: testPan(100 + row), expiry: '12/34' })}\n`
    }
    const query = { token_scope: installation.scope, batch_id: 'from-http' }
    const accepted = await client.submitBatch(rows, query)
    expect(accepted).toMatchObject({ batch_id: 'from-http', records: 40 })
    expect(await client.submitBatch(rows, query)).toEqual(accepted)
    const seen: number[] = []
    const ended = await client.batchEnd('from-http', { onProgress: ({ records_done }) => seen.push(records_done) })
    expect(ended).toMatchObject({ state: 'FINISHED', counts: { CREATED: 40 } })
    expect(seen.at(-1)).toBe(40)
    const results = []
    for await (const row of client.batchResults('from-http')) results.push(row)
    expect(results.map(({ reference, outcome }) => `${reference} ${outcome}`)).toEqual(
      Array.from({ length: 40 }, (_, row) => `r-${row} CREATED`),
    )
    expect(await refusal(client.cancelBatch('nothing'))).toMatchObject({ status: 404 })
  })

  it('asks for a report, waits for its file and checks it', async () => {
    const report = await client.orderReport({
      reportType: 'MERCHANT_SETTLEMENT_REPORT',
      reportEntityUid: ENTITY,
      reportParameter: { clearingDate: '2026-01-05' },
      mimeType: 'text/csv',
    })
    const file = await text(await client.reportFile(report.reportUid))
    expect(file.split('\n')[0]).toContain(',')
    const unknown = client.reportFile('7b1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b')
    expect(await refusal(unknown)).toMatchObject({ status: 404 })
  })
})
