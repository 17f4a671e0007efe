// Names that senders choose are stored in clear, so a possible card number is refused as a name (PCI DSS 3.5.1) on
// every way in. Names that were accepted before this rule still work.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Credentials } from '../../producers/client/client-file.ts'
import { type Client, RefusedError } from '../../producers/client.ts'
import { tokenBatch } from '../../producers/token-batch.ts'
import * as clients from '../../src/store/access/clients.ts'
import { encryptCard } from '../../src/vault/capture/encrypt.ts'
import { BATCHES, basicOf, CARD, type Caller, encrypted, openGatewayFor } from '../producers/gateway/bundle.ts'
import { runCommand } from '../support/command.ts'
import { describeOnRedis } from '../support/engines.ts'
import { grantAll } from '../support/grant-all.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { testPan } from '../support/test-pan.ts'
import { until } from '../support/until.ts'
import { type Desk, type Json, openDesk, send } from './forge.ts'

const REPORTS = '/oidc/report-engine/api/v1/reports'
const NOBODY = `t${'0'.repeat(26)}`
const masked = (name: string) => name.replace(/\d/g, '*')

describeOnRedis('a name that could be a card number', engine => {
  let installation: Installation
  let own: Credentials
  let client: Client
  let desk: Desk
  let caller: Caller
  let numbered: Awaited<ReturnType<Installation['addClient']>>
  let files: string
  let next = 0
  const pan = () => testPan(++next)

  beforeAll(async () => {
    files = await mkdtemp(join(tmpdir(), 'tokenmill-names-'))
    installation = await openInstallation(engine)
    await installation.openWorkers()
    own = installation.credentials
    client = await installation.connect()
    desk = openDesk(client)
    numbered = await installation.addClient('numbered', { names: 'numeric' })
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
    await rm(files, { recursive: true, force: true })
  })

  const details = ({ error }: { error?: { details?: Record<string, { code: string }> | undefined } | undefined }) =>
    Object.fromEntries(Object.entries(error?.details ?? {}).map(([field, { code }]) => [field, code]))
  const declined = (answer: { status: number; body: Json }) => ({
    status: answer.status,
    ...details({ error: answer.body as never }),
  })
  const receipts = async (jti: string) =>
    (
      await installation.vault.store.query({
        text: 'select 1 from tokenmill.receipt where jti = $1',
        values: [jti],
      })
    ).count
  const card = async () => {
    const key = own.captureKeys.jwe
    if (!key) throw new Error('the test client has a JWE key')
    const content = { cardNumber: pan(), expiryMonth: 12, expiryYear: 2031, captureTime: new Date().toISOString() }
    return { encrypted_card: await encryptCard(content, key), public_key_alias: key.alias }
  }
  const run = async (args: string[], clientFile = installation.clientFile) => {
    const { code, stdout, stderr } = await runCommand([...args, '--client', clientFile], { env: installation.env })
    return { code, said: `${stdout}${stderr}`, stdout }
  }

  it('is refused by the worker as jti, batch_id and parameter, masked and without a receipt', async () => {
    const ways: { claims: Json; wrong: Json }[] = [
      { claims: { jti: `order-${pan()}` }, wrong: { 'body.jti': 'jti_pan' } },
      { claims: { jti: pan().replace(/(....)(?=.)/g, '$1-') }, wrong: { 'body.jti': 'jti_pan' } },
      {
        claims: { kind: 'report', request: reportOf({ batchId: pan() }) },
        wrong: { 'body.parameters.batchId': 'parameter_pan' },
      },
      {
        claims: { kind: 'report', request: reportOf({ batchId: Number(pan()) }) },
        wrong: { 'body.parameters.batchId': 'parameter_pan' },
      },
      {
        claims: { kind: 'report', request: reportOf({ [`p${pan()}`]: 'x' }) },
        wrong: { 'body.parameters': 'parameter_pan' },
      },
      {
        claims: { kind: 'transaction-batch', request: { batch_id: `b_${pan()}`, chunk: 0, transactions: [LINE] } },
        wrong: { 'body.request.batch_id': 'batch_id_pan' },
      },
    ]
    for (const { claims, wrong } of ways) {
      const jti = await send(installation.queues, own, { claims })
      const answer = await desk.answer(jti)
      expect(answer).toMatchObject({ code: 400, jti: wrong['body.jti'] ? masked(jti) : jti })
      expect(details(answer)).toEqual(wrong)
      expect(await receipts(jti)).toBe(0)
    }
  })

  it('is signed by no client library', async () => {
    const jti = pan()
    const refusal = await client.submit('token-lifecycle', { id: NOBODY, action: 'SUSPEND' }, { jti }).catch(e => e)
    expect(refusal).toBeInstanceOf(RefusedError)
    expect(details({ error: (refusal as RefusedError).problem })).toEqual({ 'body.jti': 'jti_pan' })
    const asked = client.call('report', reportOf({ batchId: pan() }))
    await expect(asked).rejects.toMatchObject({ refusal: { reason: 'parameter_pan' } })
    const plan = {
      batchId: pan(),
      recordKind: 'token-lifecycle' as const,
      acceptedAt: Math.floor(Date.now() / 1000),
      captureKey: own.captureKeys.jwe as NonNullable<Credentials['captureKeys']['jwe']>,
    }
    const lines = [JSON.stringify({ line: 1, request: { id: NOBODY, action: 'SUSPEND' } })]
    const ask = await tokenBatch(client.clientId, plan, { number: 0, lines })
    if ('refused' in ask) throw new Error(ask.reason)
    const called = client.call('token-batch', ask.request, { jti: ask.jti, block: ask.block as string })
    await expect(called).rejects.toMatchObject({ refusal: { reason: 'batch_id_pan' } })
  })

  it('that has a receipt is answered again, and a client that is known to use numbers is under its own card’s rule', async () => {
    const [old, other] = [pan(), pan()]
    const { credentials } = await installation.addClient('renamed', { names: 'numeric' })
    const renamed = await installation.connect({ credentials, replyTo: 'renamed' })
    const suspend = { id: NOBODY, action: 'SUSPEND' }
    expect(await renamed.call('token-lifecycle', suspend, { jti: old })).toMatchObject({ code: 404, jti: old })
    const request = { token_scope: installation.scope, ...(await card()) }
    expect(await renamed.call('token-create', request, { jti: other })).toMatchObject({ code: 200, jti: other })
    const { clientId } = credentials.signingKey
    expect(await clients.setNames(installation.vault.store, clientId, 'checked')).toBe(true)
    await grantAll(installation.vault.store, installation.vault.ring)
    // Workers cache a client's row for some seconds.
    await until(
      async () => {
        const answer = await renamed.call('token-lifecycle', suspend, { jti: pan() })
        return answer.code === 400 && details(answer)['body.jti'] === 'jti_pan'
      },
      { what: 'the new rule' },
    )
    expect(await renamed.call('token-lifecycle', suspend, { jti: old })).toMatchObject({ code: 404, jti: old })
    expect(await renamed.call('token-create', request, { jti: other })).toMatchObject({ code: 200, jti: other })
  })

  it('is refused over HTTP wherever a write takes one, before anything is stored', async () => {
    const body = async () => ({
      token_scope: installation.scope,
      ...(await encrypted({ cardNumber: pan(), expiryMonth: 12, expiryYear: 2031 }, own)),
    })
    const writes: [string, string, unknown][] = [
      ['PUT', CARD, await body()],
      ['PATCH', `${CARD}/${NOBODY}`, { card_holder_name: 'ANNA' }],
      ['DELETE', `${CARD}/${NOBODY}`, undefined],
      ['PATCH', `${CARD}/${NOBODY}/suspend`, undefined],
      ['PATCH', `${CARD}/${NOBODY}/activate`, undefined],
    ]
    for (const header of ['idempotency-key', 'x-vfi-api-idempotencykey'])
      for (const [method, path, sent] of writes)
        for (const prefer of ['', 'respond-async']) {
          const headers = { [header]: `order-${pan()}`, ...(prefer && { prefer }) }
          const answer = await caller.call(method, path, { body: sent, headers })
          expect(declined(answer), `${method} ${path}`).toEqual({ status: 400, [`params.${header}`]: 'jti_pan' })
        }
    const csv = { 'content-type': 'text/csv' }
    const rows = `reference,card_number,expiry\nr1,${pan()},12/31\n`
    const post = (search: string, headers: Record<string, string> = {}) =>
      caller.call('POST', `${BATCHES}?token_scope=${installation.scope}${search}`, {
        body: rows,
        headers: { ...csv, ...headers },
      })
    expect(declined(await post('', { 'idempotency-key': pan() }))).toEqual({
      status: 400,
      'params.idempotency-key': 'jti_pan',
    })
    expect(declined(await post(`&batch_id=${pan()}`))).toEqual({ status: 400, 'query.batch_id': 'batch_id_pan' })
    const asked = { reportType: 'BATCH_REPORT', reportEntityUid: ENTITY, mimeType: 'text/csv' }
    const named = await caller.call('POST', REPORTS, { body: { ...asked, reportParameter: { batchId: pan() } } })
    expect({ status: named.status, param: named.body['param'] }).toEqual({
      status: 400,
      param: 'reportParameter.batchId',
    })
    const keyed = await caller.call('POST', REPORTS, {
      body: { ...asked, reportParameter: { batchId: 'm-1' } },
      headers: { 'idempotency-key': pan() },
    })
    expect({ status: keyed.status, param: keyed.body['param'] }).toEqual({ status: 400, param: 'idempotency-key' })
    const { rows: stored } = await installation.vault.store.query<{ n: number }>({
      text: `select ((select count(*) from tokenmill.operation) + (select count(*) from tokenmill.intake)
        + (select count(*) from tokenmill.report))::int as n`,
    })
    expect(stored).toEqual([{ n: 0 }])
  })

  it('is taken over HTTP from a client whose names are numbers, and answered again when its rule has changed', async () => {
    // A new client, because workers cache a client's rule for some seconds.
    const turned = await installation.addClient('turned', { names: 'numeric' })
    const headers = { 'idempotency-key': pan() }
    const options = { authorization: await basicOf(turned.clientFile), headers }
    const body = { token_scope: installation.scope, ...(await card()) }
    const first = await caller.call('PUT', CARD, { ...options, body })
    expect(first.status).toBe(200)
    const { clientId } = turned.credentials.signingKey
    await clients.setNames(installation.vault.store, clientId, 'checked')
    await grantAll(installation.vault.store, installation.vault.ring)
    await until(
      async () => {
        const other = { ...options, headers: { 'idempotency-key': pan() } }
        return (await caller.call('PATCH', `${CARD}/${NOBODY}/suspend`, other)).status === 400
      },
      { what: 'the new rule' },
    )
    expect((await caller.call('PUT', CARD, { ...options, body })).body).toEqual(first.body)
  })

  it('ends a command with 64, and is not said again', async () => {
    const number = pan()
    const cards = join(files, 'cards.csv')
    await writeFile(cards, `reference,card_number,expiry\nr1,${pan()},12/31\n`)
    const commands = [
      ['migrate', cards, '--batch-id', `b-${number}`],
      ['migrate', cards, '--batch-id', `b-${number}`, '--dry-run'],
      ['ingest', 'transactions', cards, '--batch-id', number],
      ['report', 'request', '--type', 'BATCH_REPORT', '--parameter', `batchId=${number}`],
      ['report', 'request', '--type', 'BATCH_REPORT', '--parameter', `batchId=${number}`, '--wait'],
      ['schedule', 'add', '--type', 'INVOICE', '--time', '03:00', '--parameter', `invoiceNumber=${number}`],
    ]
    for (const words of commands) {
      const { code, said } = await run(words)
      expect(code, `${words[0]}: ${said}`).toBe(64)
      expect(said).not.toContain(number)
    }
  })

  it('as the jti of a line to be submitted is invalid, and masked', async () => {
    const number = pan()
    const lines = join(files, 'jobs.ndjson')
    const line = { kind: 'token-lifecycle', request: { id: NOBODY, action: 'SUSPEND' }, jti: `line-${number}` }
    await writeFile(lines, `${JSON.stringify(line)}\n`)
    const { code, stdout } = await run(['submit', lines])
    expect(code).toBe(3)
    const answer = JSON.parse(stdout) as Parameters<typeof details>[0]
    expect(answer).toMatchObject({ line: 1, attempt: 0, jti: masked(line.jti) })
    expect(details(answer)).toEqual({ 'body.jti': 'jti_pan' })
    const numbers = await run(['submit', lines], numbered.clientFile)
    expect(JSON.parse(numbers.stdout)).toMatchObject({ code: 404, jti: line.jti })
  })

  it('may be a reference, unless it looks like a card of its chunk: in clear, encrypted, refused or of another row', async () => {
    const clear = { cardNumber: pan(), expiryMonth: 1, expiryYear: 2031 }
    const refused = { ...clear, cardNumber: pan(), expiryMonth: 13 }
    const sealed = pan()
    const key = own.captureKeys.jwe as NonNullable<Credentials['captureKeys']['jwe']>
    const content = { cardNumber: sealed, expiryMonth: 12, expiryYear: 2031, captureTime: new Date().toISOString() }
    const records = [
      { line: 1, reference: sealed, request: { card: clear } },
      { line: 2, reference: refused.cardNumber, request: { card: { ...clear, cardNumber: pan() } } },
      { line: 3, reference: 'r3', request: { card: refused } },
      {
        line: 4,
        reference: `x ${clear.cardNumber}`,
        request: { encrypted_card: await encryptCard(content, key), public_key_alias: key.alias },
      },
      { line: 5, reference: sealed, rejected: { reason: 'row_fields' } },
      { line: 6, reference: '5555555555554444', request: { card: { ...clear, cardNumber: pan() } } },
    ]
    const plan = {
      batchId: `like-${next}`,
      recordKind: 'token-create' as const,
      tokenScope: installation.scope,
      acceptedAt: Math.floor(Date.now() / 1000),
      captureKey: key,
    }
    const lines = records.map(record => JSON.stringify(record))
    const ask = await tokenBatch(client.clientId, plan, { number: 0, lines })
    if ('refused' in ask) throw new Error(ask.reason)
    const answer = await client.call('token-batch', ask.request, { jti: ask.jti, block: ask.block as string })
    expect(answer.records?.map(({ reference, outcome, reason }) => [reference, outcome, reason])).toEqual([
      [undefined, 'REJECTED', 'reference_pan'],
      [undefined, 'REJECTED', 'reference_pan'],
      ['r3', 'REJECTED', 'expiry_format'],
      [undefined, 'REJECTED', 'reference_pan'],
      [undefined, 'REJECTED', 'reference_pan'],
      ['5555555555554444', 'CREATED', undefined],
    ])
  })
})

const LINE = { line: 1, transaction: { transaction_uid: 'x' } }

function reportOf(parameters: Record<string, string | number>) {
  return { report_type: 'BATCH_REPORT' as const, entity_id: ENTITY, parameters, mime_type: 'text/csv' as const }
}
