// Cards are sent in every way that there is, valid and invalid; then every place that could hold one is searched. PCI
// DSS 3.3.1, 3.5.1: no card number and no security code is found anywhere in clear, in base64 or in hex.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import { tokenBatch } from '../../producers/token-batch.ts'
import { findClusterLocation } from '../../src/embedded/cluster-location.ts'
import { encryptCard, type PublicCaptureKey } from '../../src/vault/capture/encrypt.ts'
import { BATCHES, CARD, openGatewayFor } from '../producers/gateway/bundle.ts'
import { runCommand } from '../support/command.ts'
import { describeEngines } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { type Child, startScript } from '../support/process.ts'
import { until } from '../support/until.ts'
import { type Canary, canary, findCodes, findTraces, misspelt, type Place } from './canary.ts'
import { openConsoleOf } from './console/open.ts'
import { type Desk, type Json, openDesk, put, send } from './forge.ts'
import { findKeys, keysOf } from './keys.ts'
import { readDatabase, readFiles, readRedis } from './places.ts'

const CVV = '0739'
const OTHER_CVV = '0418'
const LONG_CVV = '90817263544536271'

describeEngines('card data', engine => {
  let installation: Installation
  let client: Client
  let desk: Desk
  let workers: Child
  let metricsPort: string
  let jwe: PublicCaptureKey
  let pgp: PublicCaptureKey
  let inputs: string
  const cards: Canary[] = [{ name: 'a security code that is too long', pan: LONG_CVV }]
  const said: Place[] = []

  beforeAll(async () => {
    inputs = await mkdtemp(join(tmpdir(), 'tokenmill-inputs-'))
    installation = await openInstallation(engine, { TOKENMILL_LOG_LEVEL: 'trace', TOKENMILL_LOCK_SECONDS: '3' })
    workers = startScript('test/security/workers.ts', [], { env: installation.env })
    metricsPort = (await workers.line(/workers work, metrics on (\d+)/))[1] ?? ''
    client = await installation.connect()
    desk = openDesk(client)
    const { captureKeys } = installation.credentials
    if (!captureKeys.jwe || !captureKeys.pgp) throw new Error('the client has one capture key of each form')
    jwe = captureKeys.jwe
    pgp = captureKeys.pgp
    await installation.vault.store.query({
      text: `create function tokenmill.fail() returns trigger language plpgsql as $$ begin raise exception 'made to fail'; end $$;
create trigger fail before insert on tokenmill.token for each row when (new.card_holder_name = 'DEFECT') execute function tokenmill.fail()`,
    })
  })
  afterAll(async () => {
    workers?.signal('SIGTERM')
    await workers?.exit
    await installation?.close()
    await rm(inputs, { recursive: true, force: true })
  })

  const card = (name: string, bin?: string, length?: number): Canary => {
    const made = canary(`${engine.name} ${name}`, bin, length)
    cards.push(made)
    return made
  }
  const seal = async (content: Json, key: PublicCaptureKey = jwe) => {
    const captureTime = new Date().toISOString()
    const whole = { expiryMonth: 12, expiryYear: 2031, cvv: CVV, captureTime, ...content }
    return { encrypted_card: await encryptCard(whole, key), public_key_alias: key.alias }
  }
  const create = async (
    content: Json,
    { request = {}, claims = {}, key = jwe }: { request?: Json; claims?: Json; key?: PublicCaptureKey } = {},
  ) => {
    const whole = { token_scope: installation.scope, ...(await seal(content, key)), ...request }
    const jti = await send(installation.queues, installation.credentials, {
      claims: { kind: 'token-create', request: whole, ...claims },
    })
    return desk.answer(jti)
  }
  const run = async (args: string[]) => {
    const ended = await runCommand(args, { env: installation.env })
    said.push({
      name: `command ${args.slice(0, 2).join(' ')} ${said.length}`,
      text: `${ended.stdout}\n${ended.stderr}`,
    })
    return ended
  }
  const migrate = (file: string, ...args: string[]) =>
    run(['migrate', file, '--client', installation.clientFile, '--json', ...args])
  const details = (answer: { error?: { details?: Record<string, { code: string }> | undefined } | undefined }) =>
    Object.fromEntries(Object.entries(answer.error?.details ?? {}).map(([field, { code }]) => [field, code]))

  it('makes tokens, by JWE and by OpenPGP, with a security code inside', async () => {
    expect(await create({ cardNumber: card('good jwe').pan })).toMatchObject({ code: 200 })
    expect(await create({ cardNumber: card('good pgp', '55555573').pan }, { key: pgp })).toMatchObject({ code: 200 })
    expect(await create({ cardNumber: Number(card('number').pan), cvv: Number('739') })).toMatchObject({ code: 200 })
    expect(await create({ cardNumber: card('amex', '378273', 15).pan, cvv: OTHER_CVV })).toMatchObject({ code: 200 })
    const analytic = { request: { token_type: 'ANALYTICS' } }
    expect(await create({ cardNumber: card('analytic').pan }, analytic)).toMatchObject({ code: 200 })
  })

  it('is refused for what is wrong with it', async () => {
    expect(details(await create({ cardNumber: misspelt(card('luhn')).pan }))).toEqual({
      'body.encrypted_card': 'pan_luhn',
    })
    cards.push(misspelt(card('luhn')))
    const brand = { request: { card_brand: 'AMEX' } }
    expect(details(await create({ cardNumber: card('brand').pan }, brand))).toEqual({
      'body.card_brand': 'brand_conflict',
    })
    const scope = { request: { token_scope: '11111111-2222-4333-8444-555555555555' } }
    expect(await create({ cardNumber: card('scope').pan }, scope)).toMatchObject({ code: 403 })
    const captureTime = new Date(Date.now() - 3_600_000).toISOString()
    expect(details(await create({ cardNumber: card('stale').pan, captureTime }))).toEqual({
      'body.encrypted_card': 'capture_time_stale',
    })
    expect(details(await create({ cardNumber: card('cvv').pan, cvv: LONG_CVV }))).toEqual({
      'body.encrypted_card': 'cvv_format',
    })
    const name = card('name')
    expect(details(await create({ cardNumber: name.pan, cardholderName: `A ${name.pan}` }))).toEqual({
      'body.encrypted_card': 'card_malformed',
    })
    expect(details(await create({ cardNumber: `${card('too long').pan}77777` }))).toEqual({
      'body.encrypted_card': 'pan_format',
    })
    expect(details(await create({ number: card('tag').pan }))).toEqual({ 'body.encrypted_card': 'pan_format' })
  })

  it('is refused by name where the job is named after it, and the name is not repeated', async () => {
    const grouped = (pan: string) => pan.replace(/(....)(?=.)/g, '$1-')
    const long = 3_600_000
    const ways: { content?: Json; request?: Json; claims?: Json; key?: PublicCaptureKey; wrong?: string }[] = [
      {},
      { key: pgp },
      { content: { captureTime: new Date(Date.now() - long).toISOString() } },
      { content: { expiryMonth: 13 } },
      { request: { card_brand: 'AMEX' } },
      { request: { surprise: 1 }, wrong: 'body.surprise' },
      { claims: { roles: [] }, wrong: 'body.roles' },
      {
        claims: { exp: Math.floor(Date.now() / 1000) - 60, iat: Math.floor(Date.now() / 1000) - 120 },
        wrong: 'body.exp',
      },
      { claims: { surprise: 1 }, wrong: 'body.surprise' },
    ]
    for (const [index, { content, request, claims, key = jwe, wrong }] of ways.entries()) {
      const { pan } = card(`named ${index}`)
      const options = (names: Json) => ({ request: request ?? {}, claims: { ...claims, ...names }, key })
      for (const reference of [pan, `order ${grouped(pan)}`]) {
        const answer = await create({ cardNumber: pan, ...content }, options({ reference }))
        expect(details(answer)).toEqual(wrong ? { [wrong]: expect.any(String) } : { 'body.reference': 'reference_pan' })
        expect(answer.reference).toBeUndefined()
      }
      for (const jti of [pan, `order-${grouped(pan)}`]) {
        const answer = await create({ cardNumber: pan, ...content }, options({ jti }))
        expect(details(answer)).toEqual(wrong ? { [wrong]: expect.any(String) } : { 'body.jti': 'jti_pan' })
        expect(answer.jti).toBe(jti.replaceAll(/\d/g, '*'))
      }
    }
  })

  it('is refused in clear, whatever it is called', async () => {
    const { pan } = card('clear')
    const refused = async (kind: string, request: Json, claims: Json = {}) => {
      const queue = kind === pan ? 'token-update' : kind
      const forged = { claims: { kind, request, ...claims }, queue }
      const jti = await send(installation.queues, installation.credentials, forged)
      const answer = await desk.answer(jti)
      expect([400, 403, 404]).toContain(answer.code)
      return answer
    }
    const scope = { token_scope: installation.scope }
    const number = { cardNumber: pan, expiryMonth: 1, expiryYear: 2031, cvv: CVV }
    expect(details(await refused('token-create', { ...scope, card: number }))).toMatchObject({
      'body.card': 'card_not_allowed',
    })
    expect((await refused('token-create', { ...scope, card: number }, { reference: pan })).reference).toBeUndefined()
    await refused('token-create', { ...scope, ...(await seal({ cardNumber: pan })), [pan]: pan })
    await refused('token-create', { ...scope, ...(await seal({ cardNumber: pan })), public_key_alias: pan })
    await refused('token-create', { ...scope, ...(await seal({ cardNumber: pan })), card_brand: pan })
    await refused('token-create', { ...scope, ...(await seal({ cardNumber: pan })), reuse_token_type: pan })
    await refused('token-create', { token_scope: pan, encrypted_card: pan, public_key_alias: jwe.alias })
    await refused('token-create', {
      ...scope,
      ...(await seal({ cardNumber: pan })),
      token_context: { [`card${pan}`]: pan },
    })
    await refused('token-update', { id: pan, card_holder_name: 'ANNA' })
    await refused('token-update', { id: pan, cvv: OTHER_CVV })
    await refused('token-update', { id: pan, cvv: LONG_CVV })
    expect(
      (await refused('token-lifecycle', { id: pan, action: 'SUSPEND' }, { reference: pan })).reference,
    ).toBeUndefined()
    await refused('token-lifecycle', { id: pan, action: pan })
    await refused(pan, { id: pan })
    const { jti } = await refused('token-lifecycle', { id: pan, action: 'SUSPEND' }, { jti: pan })
    expect(jti).not.toBe(pan)
    for (const data of [{ jws: pan }, { pan }, pan, { jws: `${Buffer.from(pan).toString('base64url')}.e30.AA` }])
      await put(installation.queues, 'token-create', data)
  })

  it('is not accepted as the name or address of its holder', async () => {
    const { pan } = card('holder')
    const made = await create({ cardNumber: pan })
    const id = made.record?.['reuse_token']
    const update = async (request: Json) => {
      const claims = { kind: 'token-update', request: { id, ...request } }
      return desk.answer(await send(installation.queues, installation.credentials, { claims }))
    }
    expect(details(await update({ card_holder_name: `A ${pan}` }))).toEqual({ 'body.card_holder_name': 'field_value' })
    expect(details(await update({ card_holder_email: `a${pan}@example.com` }))).toEqual({
      'body.card_holder_email': 'field_value',
    })
    const next = card('next holder')
    const linked = await seal({ cardNumber: next.pan })
    expect(details(await update({ ...linked, card_holder_name: `A ${next.pan}` }))).toEqual({
      'body.card_holder_name': 'field_value',
    })
    expect(await update({ ...linked, card_holder_name: 'ANNA' })).toMatchObject({ code: 200 })
  })

  it('fails by a defect of ours, is listed and tried again', async () => {
    expect(await create({ cardNumber: card('defect').pan, cardholderName: 'DEFECT' })).toMatchObject({ code: 500 })
    const before = desk.all().filter(({ code }) => code === 500).length
    const listed = await run(['failed', 'list', '--json'])
    expect(JSON.parse(listed.stdout)).toMatchObject([{ kind: 'token-create', code: 'defect' }])
    expect(await run(['failed', 'retry'])).toMatchObject({ code: 0 })
    await until(() => desk.all().filter(({ code }) => code === 500).length > before)
  })

  it('is no name: neither of a job, nor of a batch, nor of what a report tells', async () => {
    const name = (of: string) => `x-${card(of).pan}`
    const lifecycle = { id: `t${'0'.repeat(26)}`, action: 'SUSPEND' }
    const batchReport = { report_type: 'BATCH_REPORT', entity_id: ENTITY, mime_type: 'text/csv' }
    const reporting = (of: string) => ({ ...batchReport, parameters: { batchId: name(of) } })
    const ledger = { batch_id: name('ledger batch'), chunk: 0, transactions: [{ line: 1, transaction: {} }] }
    const jobs: Json[] = [
      { kind: 'token-lifecycle', request: lifecycle, jti: name('jti') },
      { kind: 'token-lifecycle', request: lifecycle, jti: name('late'), iat: 1, exp: 2 },
      { kind: 'token-lifecycle', request: { ...lifecycle, surprise: 1 }, jti: name('unshaped') },
      { kind: 'report', request: reporting('parameter') },
      { kind: 'transaction-batch', request: ledger },
    ]
    for (const claims of jobs) {
      const jti = await send(installation.queues, installation.credentials, { claims })
      expect(await desk.answer(jti)).toMatchObject({ code: 400 })
    }
    await expect(client.submit('token-lifecycle', lifecycle, { jti: name('library') })).rejects.toThrow('jti_pan')
    await expect(client.submit('report', reporting('library parameter'))).rejects.toThrow('parameter_pan')

    const gateway = await openGatewayFor(installation, { TOKENMILL_LOG_LEVEL: 'error' })
    try {
      const ask = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
        const answer = await gateway.call(method, path, { headers, body })
        said.push({ name: `${method} ${path.split('?')[0]}`, text: answer.text })
        expect(answer.status).toBe(400)
      }
      const asked = { reportType: 'BATCH_REPORT', reportEntityUid: ENTITY, mimeType: 'text/csv' }
      const batches = `${BATCHES}?kind=token-lifecycle`
      const csv = { 'content-type': 'text/csv' }
      const rows = `id,action\n${lifecycle.id},SUSPEND\n`
      await ask('PATCH', `${CARD}/${lifecycle.id}/suspend`, { 'idempotency-key': name('key') })
      await ask('DELETE', `${CARD}/${lifecycle.id}`, { 'idempotency-key': name('later'), prefer: 'respond-async' })
      await ask('DELETE', `${CARD}/${lifecycle.id}`, { 'x-vfi-api-idempotencykey': name('alias') })
      await ask('POST', batches, { ...csv, 'idempotency-key': name('batch key') }, rows)
      await ask('POST', `${batches}&batch_id=${name('batch')}`, csv, rows)
      const parameters = { ...asked, reportParameter: { batchId: name('report') } }
      await ask('POST', '/oidc/report-engine/api/v1/reports', {}, parameters)
    } finally {
      await gateway.close()
    }
    const file = join(inputs, 'named.csv')
    await writeFile(file, `reference,card_number,expiry\nr1,${card('of a named batch').pan},12/31\n`)
    expect(await migrate(file, '--batch-id', name('file'))).toMatchObject({ code: 64, stdout: '' })
    const mine = ['--client', installation.clientFile]
    expect(await run(['ingest', 'transactions', file, '--batch-id', name('ledger'), ...mine])).toMatchObject({
      code: 64,
    })
    const nightly = ['schedule', 'add', '--type', 'INVOICE', '--time', '03:00', ...mine]
    const parameter = (of: string) => ['--parameter', `invoiceNumber=${name(of)}`]
    expect(await run([...nightly, ...parameter('nightly')])).toMatchObject({ code: 64 })
    const report = ['report', 'request', '--type', 'BATCH_REPORT', ...mine]
    expect(await run([...report, '--parameter', `batchId=${name('asked')}`])).toMatchObject({ code: 64 })
  })

  it('comes in files, beside rows that are refused, fail and crash', async () => {
    const row = (reference: string, pan: string, expiry = '12/31', name = 'ANNA') =>
      [reference, pan, expiry, name].join(',')
    const twice = card('twice')
    const named = card('row name')
    const rows = [
      'reference,card_number,expiry,cardholder_name',
      row('r1', card('row 1').pan),
      row('r2', misspelt(card('row 2')).pan),
      row('r3', twice.pan),
      row('r4', twice.pan, '11/30'),
      row(named.pan, named.pan),
      row('r6', card('row 6').pan, '99/99'),
      row('DEFECT r7', card('row 7').pan),
      row('r8', card('row 8').pan, '13/31'),
      row('r9', card('row 9').pan, '12/31', card('row 9').pan),
      row(`of ${twice.pan}`, card('row of another').pan),
      `r10,${card('row 10').pan},12/31,ANNA,one too many`,
      `r11,"${card('row 11').pan}"x,12/31,ANNA`,
    ]
    const file = join(inputs, 'cards.csv')
    await writeFile(file, rows.join('\n'))
    const first = await migrate(file)
    expect(first, first.stderr).toMatchObject({ code: 3 })
    expect(JSON.parse(first.stdout)).toMatchObject({ rows: 12, created: 2, duplicate: 1, rejected: 8, failed: 1 })
    const replayed = await migrate(file)
    expect(JSON.parse(replayed.stdout)).toMatchObject({ variant: 'replay', created: 2, failed: 1 })
    const rehearsed = await migrate(file, '--dry-run')
    expect(rehearsed, rehearsed.stderr).toMatchObject({ code: 3 })
  })

  it('is at hand when a process dies', async () => {
    const file = join(inputs, 'abort.csv')
    await writeFile(
      file,
      `reference,card_number,expiry\nABORT,${card('abort').pan},12/31\nr2,${card('beside').pan},12/31\n`,
    )
    const done = await migrate(file)
    expect(done, done.stderr).toMatchObject({ code: 3 })
    expect(JSON.parse(done.stdout)).toMatchObject({ created: 1, failed: 1 })
  })

  it.runIf(engine.name === 'postgres')('stands where the names of columns should, and stops the run', async () => {
    const { pan } = card('header')
    const headers = [`r1,${pan},12/31`, `reference,card_number,expiry,my_${pan}_x`]
    for (const [index, header] of headers.entries()) {
      const file = join(inputs, `header-${index}.csv`)
      await writeFile(file, `${header}\nr1,${pan},12/31,x\n`)
      expect(await migrate(file)).toMatchObject({ code: 64, stdout: '' })
    }
    const lines = join(inputs, 'keys.ndjson')
    await writeFile(lines, `{"reference":"a","card_number":"${pan}","expiry":"12/31","${pan}":"x"}\n`)
    expect(await migrate(lines)).toMatchObject({ code: 64, stdout: '' })
  })

  it('comes in chunks made by somebody else’s hand', async () => {
    const { pan } = card('chunk clear')
    const sealed = card('chunk sealed')
    const stale = card('chunk stale')
    const id = (await create({ cardNumber: card('chunk update').pan })).record?.['reuse_token']
    const next = card('chunk next')
    const clear = { cardNumber: pan, expiryMonth: 1, expiryYear: 2031 }
    const creates = [
      { line: 1, reference: pan, request: { card: clear } },
      { line: 2, reference: pan, request: { card: { ...clear, expiryMonth: 13 } } },
      { line: 3, reference: pan, request: { card: clear, surprise: 1 } },
      { line: 4, reference: pan, request: { cardNumber: pan } },
      { line: 5, reference: sealed.pan, request: await seal({ cardNumber: sealed.pan }) },
      {
        line: 6,
        reference: stale.pan,
        request: await seal({ cardNumber: stale.pan, captureTime: '2020-01-01T00:00:00Z' }),
      },
      { line: 7, reference: 'ok', request: { card: { ...clear, cvv: CVV } } },
      { line: 8, reference: 'ok', request: { [pan]: pan } },
    ]
    const updates = [
      { line: 1, reference: next.pan, request: { id, card: { ...clear, cardNumber: next.pan } } },
      { line: 2, reference: next.pan, request: { id, ...(await seal({ cardNumber: next.pan })) } },
      { line: 3, reference: next.pan, request: { id: next.pan, card_holder_name: 'ANNA' } },
      {
        line: 4,
        reference: 'ok',
        request: { id, card: { ...clear, cardNumber: next.pan }, card_holder_name: `A ${next.pan}` },
      },
      { line: 5, reference: 'ok', request: { id, cvv: OTHER_CVV } },
    ]
    for (const [recordKind, records] of [
      ['token-create', creates],
      ['token-update', updates],
    ] as const) {
      const plan = {
        batchId: `hand-${recordKind}`,
        recordKind,
        tokenScope: installation.scope,
        acceptedAt: Math.floor(Date.now() / 1000),
        captureKey: jwe,
      }
      const lines = records.map(record => JSON.stringify(record))
      const ask = await tokenBatch(client.clientId, plan, { number: 0, lines })
      if ('refused' in ask) throw new Error(ask.reason)
      const answer = await client.call('token-batch', ask.request, { jti: ask.jti, block: ask.block as string })
      expect(answer.records?.map(({ outcome }) => outcome)).toEqual(records.map(() => 'REJECTED'))
      expect(answer.records?.map(({ reference }) => reference)).toEqual(
        records.map(({ reference }) => (reference === 'ok' ? 'ok' : undefined)),
      )
    }
  })

  it('comes on lines to be submitted, good and bad', async () => {
    const { pan } = card('line')
    const good = { token_scope: installation.scope, ...(await seal({ cardNumber: card('line good').pan })) }
    const lines = [
      { kind: 'token-create', request: good },
      { kind: 'token-create', request: { card: { cardNumber: pan } }, reference: pan },
      { kind: 'token-update', request: { id: pan, cvv: CVV }, jti: pan },
      { kind: pan, request: {} },
      { kind: 'token-lifecycle', request: { id: pan, action: 'SUSPEND' }, reference: pan },
      { kind: 'token-lifecycle', request: { id: 'x', action: 'SUSPEND' }, jti: `line-${card('line jti').pan}` },
      { kind: 'token-create', request: { ...good, ...(await seal({ cardNumber: pan })) }, reference: pan },
    ].map(line => JSON.stringify(line))
    const file = join(inputs, 'jobs.ndjson')
    await writeFile(file, [...lines, `{"kind":"token-create",${pan}`, pan].join('\n'))
    const submitted = await run(['submit', file, '--client', installation.clientFile])
    expect(submitted, submitted.stderr).toMatchObject({ code: 3 })
    expect(submitted.stdout.trim().split('\n')).toHaveLength(9)
    expect(
      await run(['results', 'replay', '--since', '2020-01-01', '--client', installation.clientFile]),
    ).toMatchObject({ code: 0 })
  })

  it.runIf(engine.name === 'postgres')(
    'reaches no browser by any page, stream or CSV of the console, and no key of the installation does',
    async () => {
      const keys = await keysOf(installation)
      expect(keys.length).toBeGreaterThan(30)
      const served = await openConsoleOf(installation)
      try {
        const found = (places: readonly Place[]) => [
          ...[...findTraces(cards, places), ...findCodes([CVV, OTHER_CVV], places), ...findKeys(keys, places)],
        ]
        const shown = await served.read()
        expect(shown.filter(({ text }) => text.startsWith('200 ')).length).toBeGreaterThan(80)
        const words = ['text/event-stream', 'text/csv', 'pan_luhn', 'defect', 'REJECTED', 'token-create']
        expect(words.filter(word => !shown.some(({ text }) => text.includes(word)))).toEqual([])
        expect(shown.filter(({ text }) => text.startsWith('5'))).toEqual([])
        expect(found(shown)).toEqual([])
        // What is on a page is found there: a number in groups, one in base64, a security code and a key.
        const [pan = '', key] = [cards[1]?.pan, keys[0]?.bytes.toString('base64')]
        const planted = [pan.replaceAll(/(....)/g, '$1 '), Buffer.from(pan).toString('base64'), CVV, key].join(' / ')
        await installation.vault.store.query({
          text: `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at, source_name)
values ($1, 'planted', 'token-create', 1, '{}', now(), $2)`,
          values: [client.clientId, planted],
        })
        const page = await served.read(path => /^\/batches\/\d+$/.test(path))
        const as = found(page).map(hit => hit.as)
        for (const form of ['separated', 'alone', 'base64']) expect(as).toContain(form)
        await installation.vault.store.query({ text: `delete from tokenmill.batch where batch_id = 'planted'` })
      } finally {
        await served.close()
      }
    },
  )

  it('is found nowhere', async () => {
    const places = [...said, { name: 'results', text: JSON.stringify(desk.all()) }]
    const page = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
    const metrics = await page.text()
    for (const worker of ['interactive-0', 'bulk-0'])
      expect(metrics).toMatch(new RegExp(`^tokenmill_jobs_total\\{[^}]*process="${worker}"`, 'm'))
    places.push({ name: 'metrics', text: metrics })
    // Waiting and failed jobs are in the queues at this moment.
    if (engine.redisUrls?.[0]) places.push(...(await readRedis(engine.redisUrls[0], engine.prefix)))
    places.push(...(await readDatabase(engine.databaseUrl)))
    places.push(...(await readFiles(installation.dataDir)))
    places.push(
      ...(await readFiles(inputs, path => !/\/(cards|abort|named|header-\d|keys|jobs)\.(csv|ndjson)$/.test(path))),
    )
    // The log of the server that this file uses; the directory of the run also holds the logs of other servers.
    const { serverLog } = await findClusterLocation(join(inject('runDir'), 'postgres'))
    const log = await readFile(serverLog, 'utf8')
    expect(log).toContain('ready to accept connections')
    places.push({ name: serverLog, text: log })
    workers.signal('SIGTERM')
    await workers.exit
    places.push({ name: 'workers', text: `${workers.stdout()}\n${workers.stderr()}` })
    expect(workers.stderr()).toMatch(/"level":(10|20)/)
    expect(places.length).toBeGreaterThan(40)
    expect(findTraces(cards, places)).toEqual([])
    expect(findCodes([CVV, OTHER_CVV], places)).toEqual([])
  })
})
