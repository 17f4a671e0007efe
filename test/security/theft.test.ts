// A thief who reads the queues gets ciphertext and signed texts. Another client can't use any of them: not a block, not
// an encrypted card, not a job that is sent again, not a result.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import { type InstallationKey, ResultData, sealResult } from '../../src/job/answer/result.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { blockDigest, sealBlock } from '../../src/vault/capture/block.ts'
import { encryptCard } from '../../src/vault/capture/encrypt.ts'
import { describeEngines } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { canary } from './canary.ts'
import { type Desk, forge, type Json, openDesk, otherKey, put, send } from './forge.ts'
import { type Counters, openCounters } from './metrics.ts'

const THEIR_ENTITY = '11111111-2222-4333-8444-555555555555'
type Party = Awaited<ReturnType<Installation['addClient']>>

describeEngines('what is stolen from the queues', engine => {
  let installation: Installation
  let victim: Party
  let thief: Party
  let client: Client
  let thiefs: Client
  let desk: Desk
  let thiefDesk: Desk
  let counters: Counters
  beforeAll(async () => {
    installation = await openInstallation(engine)
    victim = installation
    thief = await installation.addClient('thief', { entity: THEIR_ENTITY })
    client = await installation.connect()
    thiefs = await installation.connect({ credentials: thief.credentials })
    desk = openDesk(client)
    thiefDesk = openDesk(thiefs)
  })
  afterAll(() => installation?.close())

  const jweOf = ({ credentials }: Party) => {
    const { jwe } = credentials.captureKeys
    if (!jwe) throw new Error('a client has a JWE capture key')
    return jwe
  }
  const seal = async (name: string, party: Party = victim) => {
    const jwe = jweOf(party)
    const card = {
      cardNumber: canary(`${engine.name} ${name}`).pan,
      expiryMonth: 12,
      expiryYear: 2031,
      captureTime: new Date().toISOString(),
    }
    return { encrypted_card: await encryptCard(card, jwe), public_key_alias: jwe.alias }
  }
  const batchOf = (party: Party, batchId: string, block: string, alias: string): Json => ({
    batch_id: batchId,
    chunk: 0,
    chunk_records: 500,
    record_kind: 'token-create',
    token_scope: party.scope,
    accepted_at: Math.floor(Date.now() / 1000),
    block: { sha256: blockDigest(block), records: 1, public_key_alias: alias },
  })
  const tokens = async () => {
    const { rows } = await installation.vault.store.query<{ n: number; versions: number; receipts: number }>({
      text: `select count(*) as n, coalesce(sum(version), 0) as versions, (select count(*) from tokenmill.receipt) as receipts from tokenmill.token`,
    })
    return rows[0]
  }
  const dropped = async () => (await counters.by('tokenmill_envelopes_refused_total', 'reason'))['block'] ?? 0

  it('is a block that opens for nobody else', async () => {
    const jwe = jweOf(victim)
    const jti = 'theft-0'
    const block = await sealBlock(`{"line":1,"request":{"card":{"cardNumber":"${canary('block').pan}"}}}`, jwe, {
      iss: client.clientId,
      jti,
    })
    const request = batchOf(victim, 'theft', block, jwe.alias)
    await send(installation.queues, victim.credentials, { claims: { kind: 'token-batch', jti, request }, block })
    // No worker runs yet, so the job is in the queue.
    const [waiting] = await installation.queues.list('token-batch', ['waiting'], 0, 9)
    const stolen = waiting?.data as { jws: string; block: string }
    expect(stolen.block).toBe(block)
    const theirs = { ...request, token_scope: thief.scope }
    const rewrapped = `${Buffer.from(JSON.stringify({ ...headerOf(block), iss: thief.credentials.signingKey.clientId })).toString('base64url')}${block.slice(block.indexOf('.'))}`
    const jobs: { claims: Json; block: string }[] = [
      { claims: { jti, request: theirs }, block },
      { claims: { jti, request }, block },
      { claims: { jti: 'mine-0', request: { ...theirs, batch_id: 'mine' } }, block },
    ]
    counters = openCounters(await installation.openWorkers())
    expect(await desk.answer(jti)).toMatchObject({ code: 200, records: [{ outcome: 'CREATED' }] })
    const before = await tokens()
    for (const { claims, block } of jobs) {
      const jws = forge(thief.credentials, { claims: { kind: 'token-batch', ...claims } })
      await put(installation.queues, 'token-batch', { jws, block })
    }
    await until(async () => (await dropped()) === jobs.length)
    // With the thief's header the block can't be decrypted.
    const named = batchOf(thief, 'theft', rewrapped, jwe.alias)
    await send(installation.queues, thief.credentials, {
      claims: { kind: 'token-batch', jti, request: named },
      block: rewrapped,
    })
    expect(await thiefDesk.answer(jti)).toMatchObject({
      code: 400,
      error: { details: { 'body.request.block.public_key_alias': { code: 'alias_unknown' } } },
    })
    expect(await tokens()).toEqual(before)
  })

  it('is an encrypted card that belongs to its entity', async () => {
    const sealed = await seal('card')
    const before = await tokens()
    const attempt = async (request: Json) =>
      thiefDesk.answer(
        await send(installation.queues, thief.credentials, { claims: { kind: 'token-create', request } }),
      )
    const foreign = await attempt({ token_scope: thief.scope, ...sealed })
    expect(foreign).toMatchObject({
      code: 400,
      error: { details: { 'body.public_key_alias': { code: 'alias_unknown' } } },
    })
    const renamed = await attempt({ token_scope: thief.scope, ...sealed, public_key_alias: jweOf(thief).alias })
    expect(renamed).toMatchObject({
      code: 400,
      error: { details: { 'body.encrypted_card': { code: 'card_undecryptable' } } },
    })
    const scoped = await attempt({ token_scope: victim.scope, ...sealed })
    expect(scoped).toMatchObject({ code: 403 })
    const absent = await attempt({ token_scope: thief.scope, ...sealed, public_key_alias: 'no-such-alias' })
    expect(absent.error?.details).toEqual(foreign.error?.details)
    const jti = 'records-0'
    const jwe = jweOf(thief)
    const block = await sealBlock(JSON.stringify({ line: 1, request: sealed }), jwe, { iss: thiefs.clientId, jti })
    await send(installation.queues, thief.credentials, {
      claims: { kind: 'token-batch', jti, request: batchOf(thief, 'records', block, jwe.alias) },
      block,
    })
    expect(await thiefDesk.answer(jti)).toMatchObject({
      records: [{ outcome: 'REJECTED', reason: 'alias_unknown', field: 'body.public_key_alias' }],
    })
    expect(await tokens()).toMatchObject({ n: before?.n, versions: before?.versions })
  })

  it('is a token that nobody else sees', async () => {
    const made = await desk.answer(
      await send(installation.queues, victim.credentials, {
        claims: { kind: 'token-create', request: { token_scope: victim.scope, ...(await seal('token')) } },
      }),
    )
    const id = made.record?.['reuse_token']
    const before = await tokens()
    for (const [kind, request] of [
      ['token-lifecycle', { id, action: 'DELETE' }],
      ['token-update', { id, card_holder_name: 'THIEF' }],
      ['token-update', { id, ...(await seal('relink', thief)) }],
    ] as const) {
      const answer = await thiefDesk.answer(
        await send(installation.queues, thief.credentials, { claims: { kind, request } }),
      )
      expect(answer).toMatchObject({ code: 404, error: { details: { 'body.id': { code: 'token_not_found' } } } })
    }
    expect(await tokens()).toMatchObject({ n: before?.n, versions: before?.versions })
  })

  it('is a job that, sent again, does nothing twice', async () => {
    const create = {
      kind: 'token-create',
      jti: 'again',
      request: { token_scope: victim.scope, ...(await seal('again')) },
    }
    const first = forge(victim.credentials, { claims: create })
    await put(installation.queues, 'token-create', { jws: first })
    const made = await desk.answer('again')
    const id = made.record?.['reuse_token']
    const renamed = await send(installation.queues, victim.credentials, {
      claims: { kind: 'token-update', request: { id, card_holder_name: 'ANNA', expiry_year: 2035 } },
    })
    await desk.answer(renamed)
    const before = await tokens()
    for (const copy of [1, 2, 3]) {
      await put(installation.queues, 'token-create', { jws: first }, `j_copy-${copy}`)
      // In another kind's queue it is still worked as the signed kind.
      await put(installation.queues, 'token-update', { jws: first }, `j_copy-${copy}`)
    }
    await until(async () => Object.values(await installation.queues.depth('token-create')).every(n => n === 0))
    await until(async () => Object.values(await installation.queues.depth('token-update')).every(n => n === 0))
    await desk.answer(await send(installation.queues, victim.credentials))
    expect(await tokens()).toEqual({ ...before, receipts: Number(before?.receipts) + 1 })
    // The stored answer is repeated with the same id, so a reader skips it.
    expect(new Set(desk.answersTo('again').map(({ result_id }) => result_id)).size).toBe(1)
  })

  it('is a result that nobody believes but whom it is for, and nobody else can make', async () => {
    const elsewhere = 'unread'
    await send(installation.queues, victim.credentials, { claims: { reply_to: elsewhere } })
    await send(installation.queues, victim.credentials, { claims: { reply_to: elsewhere } })
    const queue = resultsQueue(client.clientId, elsewhere)
    const [one, two] = await until(async () => {
      const found = await installation.queues.list(queue, ['waiting'], 0, 9)
      return found.length === 2 && found.map(({ data }) => ResultData.parse(data))
    })
    if (!one || !two) throw new Error('two results wait')
    const genuine = JSON.parse(one.body) as { result_id: string; receipt_id: string; revision: number }
    const { kid } = installationKeyOf(victim)
    const forger: InstallationKey = { kid, alg: 'EdDSA', privateKey: otherKey() }
    const about = { clientId: client.clientId, resultId: genuine.result_id, revision: 1 }
    const better = JSON.stringify({ ...genuine, status: 'SUCCEEDED', code: 200 })
    const forgeries: unknown[] = [
      { body: better, jws: one.jws },
      { body: one.body, jws: two.jws },
      { body: `${one.body} `, jws: one.jws },
      sealResult(better, about, forger),
      sealResult(better, about, { ...victim.credentials.signingKey, alg: 'EdDSA', kid }),
      { body: one.body },
      { jws: one.jws },
      { body: one.body, jws: `${one.jws}=` },
      { body: one.body, jws: unsigned(one.jws) },
      'x',
      null,
      {},
    ]
    const forged = client.counts().forged
    for (const [index, data] of forgeries.entries())
      await put(installation.queues, resultsQueue(client.clientId), data, `r_forged-${index}`)
    await until(() => client.counts().forged === forged + forgeries.length, {
      what: 'the end of all forgeries',
    })
    // A result by an unknown key is neither believed nor acknowledged.
    const unknown = sealResult(better, about, { ...forger, kid: 'mine' })
    await put(installation.queues, resultsQueue(client.clientId), unknown, 'r_unknown')
    await until(
      async () => (await installation.queues.stateOf(resultsQueue(client.clientId), 'r_unknown')) === 'delayed',
    )
    expect(client.counts().forged).toBe(forged + forgeries.length)
    expect(desk.all().some(({ receipt_id }) => receipt_id === genuine.receipt_id)).toBe(false)
    // Another client doesn't believe the genuine result.
    const stolen = thiefs.counts().forged
    await put(installation.queues, resultsQueue(thiefs.clientId), one, 'r_stolen')
    await until(() => thiefs.counts().forged === stolen + 1)
    await put(installation.queues, resultsQueue(client.clientId), one, 'r_moved')
    await until(() => desk.all().some(({ receipt_id }) => receipt_id === genuine.receipt_id))
  })
})

function headerOf(jwe: string): Json {
  return JSON.parse(Buffer.from(jwe.slice(0, jwe.indexOf('.')), 'base64url').toString()) as Json
}

function installationKeyOf({ credentials }: Party): { kid: string } {
  const [kid] = credentials.installationKeys.keys()
  return { kid: kid ?? '' }
}

/** The same claims under `alg: none`. */
function unsigned(jws: string): string {
  const [head = '', body = ''] = jws.split('.')
  const header = { ...(JSON.parse(Buffer.from(head, 'base64url').toString()) as Json), alg: 'none' }
  return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${body}.AA`
}
