// Envelopes that are forged, broken, stale or not permitted. CONTRACT 4: an envelope that no registered key has signed
// has no effect and is only counted; one that a client signed without permission gets a refusal.

import { createHmac } from 'node:crypto'
import { createPostgresBackend, FlowProducer, Queue } from 'bullmq'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Credentials } from '../../producers/client/client-file.ts'
import type { Client } from '../../producers/client.ts'
import { ROLES } from '../../src/job/catalogue.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { ENVELOPE } from '../../src/job/envelope/envelope.ts'
import { jobId, receiptId } from '../../src/job/envelope/ids.ts'
import * as clients from '../../src/store/access/clients.ts'
import { blockDigest, sealBlock } from '../../src/vault/capture/block.ts'
import { encryptCard } from '../../src/vault/capture/encrypt.ts'
import { describeEngines } from '../support/engines.ts'
import { grantAll } from '../support/grant-all.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import {
  base64url,
  claimsOf,
  type Desk,
  type Forged,
  forge,
  type Json,
  openDesk,
  otherKey,
  put,
  send,
  systemCredentials,
} from './forge.ts'
import { type Counters, openCounters } from './metrics.ts'
import { TOKEN } from './wrong.ts'

const DAY = 86_400
const nowSeconds = () => Math.floor(Date.now() / 1000)

describeEngines('an envelope', engine => {
  let installation: Installation
  let own: Credentials
  let client: Client
  let desk: Desk
  let counters: Counters
  const closers: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    installation = await openInstallation(engine)
    counters = openCounters(await installation.openWorkers())
    own = installation.credentials
    client = await installation.connect()
    desk = openDesk(client)
  })
  afterAll(async () => {
    for (const close of closers) await close()
    await installation?.close()
  })

  /** The counts of rows in the store, and of jobs in every queue but results queues. */
  const traces = async () => {
    const { rows } = await installation.vault.store.query<
      Record<'receipts' | 'told' | 'tokens' | 'reply_queues', number>
    >({
      text: `select (select count(*) from tokenmill.receipt) as receipts, (select count(*) from tokenmill.outbox) as told,
        (select count(*) from tokenmill.token) as tokens, (select count(*) from tokenmill.reply_queue) as reply_queues`,
    })
    const queues = CATALOGUE.kinds.flatMap(kind => [kind, `failed-${kind}`])
    const depths = await Promise.all(queues.map(async queue => Object.values(await installation.queues.depth(queue))))
    const none = { receipts: 0, told: 0, tokens: 0, reply_queues: 0 }
    return { ...none, ...rows[0], queued: depths.flat().reduce((sum, n) => sum + n, 0), answers: desk.all().length }
  }
  const underWay = async () => {
    const depths = await Promise.all(CATALOGUE.kinds.map(kind => installation.queues.depth(kind)))
    return depths.reduce((sum, { waiting, active, delayed }) => sum + waiting + active + delayed, 0)
  }
  const drops = () => counters.by('tokenmill_envelopes_refused_total', 'reason')
  /** Runs `act`. Expects that its jobs are dropped for these reasons, as often as given, and leave nothing else. */
  const expectDropped = async (reasons: Record<string, number>, act: () => Promise<unknown>) => {
    // Waits until earlier jobs have left their queues: a job leaves its queue only after its answer.
    await until(async () => (await underWay()) === 0)
    const before = await traces()
    const counted = await drops()
    await act()
    const wanted = Object.values(reasons).reduce((sum, n) => sum + n, 0)
    const since = async () => {
      const now = await drops()
      return Object.fromEntries(
        Object.entries(now).flatMap(([reason, n]) =>
          n > (counted[reason] ?? 0) ? [[reason, n - (counted[reason] ?? 0)]] : [],
        ),
      )
    }
    await until(async () => Object.values(await since()).reduce((sum, n) => sum + n, 0) >= wanted, {
      what: `drops ${JSON.stringify(reasons)}`,
    }).catch(async error => {
      throw new Error(`${error.message}; found ${JSON.stringify(await since())}`)
    })
    expect(await since()).toEqual(reasons)
    await until(async () => (await traces()).queued === before.queued)
    // An answer to them would have been published before this one, which was requested later.
    const later = await send(installation.queues, own)
    expect(await desk.answer(later)).toMatchObject({ code: 404 })
    // A job is taken off its queue after it was answered.
    await until(async () => (await traces()).queued === before.queued)
    const after = await traces()
    expect(after).toEqual({
      ...before,
      receipts: before.receipts + 1,
      told: before.told + 1,
      answers: before.answers + 1,
    })
  }
  const sendAll = async (forgeries: (Forged | string)[], kind = 'token-lifecycle') => {
    for (const one of forgeries)
      await put(installation.queues, kind, { jws: typeof one === 'string' ? one : forge(own, one) })
  }

  it('that is no envelope leaves nothing', async () => {
    const good = forge(own)
    const [head = '', body = '', signature = ''] = good.split('.')
    const { kid } = own.signingKey
    const twice = `{"alg":"EdDSA","alg":"EdDSA","kid":"${kid}","typ":"tokenmill-job+jwt"}`
    const claims = JSON.stringify(claimsOf(own))
    const forgeries = [
      '',
      'x',
      `${head}.${body}`,
      `${head}.${body}.`,
      `${head}..${signature}`,
      `.${body}.${signature}`,
      `${good}.${signature}`,
      `${good}=`,
      `${good}\n`,
      ` ${good}`,
      `${head}.${body}+.${signature}`,
      `${head}.${nonCanonical(own)}.${signature}`,
      `${base64url(twice)}.${body}.${signature}`,
      `${base64url('[]')}.${body}.${signature}`,
      `${base64url('null')}.${body}.${signature}`,
      ...['[]', 'null', '1', '"x"', '', '{', `{"iss":${'['.repeat(50_000)}`].map(payload => ({ payload })),
      { payload: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) },
      { payload: claims.replace('{', '{"kind":"token-create",') },
      { payload: claims.replace('"request":{', '"request":{"id":"x",') },
      { payload: claims.replace('"request":{', '"request":{"\\u0069d":"x",') },
    ]
    const data: unknown[] = [
      'x',
      1,
      [],
      [good],
      null,
      {},
      { jws: 1 },
      { jws: [good] },
      { jws: good, extra: 1 },
      { jws: good, block: 1 },
      { JWS: good },
    ]
    await expectDropped({ malformed: forgeries.length + data.length }, async () => {
      await sendAll(forgeries)
      for (const one of data) await put(installation.queues, 'token-lifecycle', one)
    })
  })

  it('that is too large leaves nothing', async () => {
    const large = 'x'.repeat(ENVELOPE.jwsBytesMax)
    await expectDropped({ oversized: 2 }, async () => {
      await sendAll([{ claims: { reference: large } }])
      await put(installation.queues, 'token-lifecycle', {
        jws: forge(own),
        block: 'x'.repeat(ENVELOPE.blockBytesMax + 1),
      })
    })
  })

  it('with another block than its own, or with one where none belongs, leaves nothing', async () => {
    const { jwe } = own.captureKeys
    if (!jwe) throw new Error('the client has a JWE capture key')
    const line = '{"line":1,"request":{"card":{"cardNumber":"4111111111111111"}}}'
    const seal = (jti: string, iss = client.clientId) => sealBlock(line, jwe, { iss, jti })
    const request = (block: string): Json => ({
      batch_id: 'blocks',
      chunk: 0,
      chunk_records: 500,
      record_kind: 'token-create',
      token_scope: installation.scope,
      accepted_at: nowSeconds(),
      block: { sha256: blockDigest(block), records: 1, public_key_alias: jwe.alias },
    })
    const jti = 'blocks-0'
    const kind = 'token-batch'
    const block = await seal(jti)
    const foreign = await seal('blocks-1')
    const nothing = `${base64url('null')}.a.b.c.d`
    await expectDropped({ block: 7 }, async () => {
      const jobs: { block?: string; named: string; kind?: string }[] = [
        { named: block },
        { named: block, block: await seal(jti) },
        { named: block, block: `${block} ` },
        { named: foreign, block: foreign },
        { named: nothing, block: nothing },
        { named: 'x', block: 'x' },
        { named: block, block, kind: 'token-create' },
      ]
      for (const one of jobs) {
        const jws = forge(own, { claims: { kind: one.kind ?? kind, jti, request: request(one.named) } })
        await put(installation.queues, one.kind ?? kind, one.block === undefined ? { jws } : { jws, block: one.block })
      }
    })
    await put(installation.queues, kind, { jws: forge(own, { claims: { kind, jti, request: request(block) } }), block })
    expect(await desk.answer(jti)).toMatchObject({ code: 200, records: [{ outcome: 'CREATED' }] })
  })

  it('with a parent or a schedule leaves nothing', async () => {
    const pool = engine.redisUrls
      ? undefined
      : new pg.Pool({
          connectionString: engine.databaseUrl,
          max: 4,
          options: '-c search_path=bullmq -c role=tokenmill_queue',
        })
    const connection = pool ?? { url: engine.redisUrls?.[0] ?? '' }
    const backend = pool && (createPostgresBackend as never)
    const flows = new FlowProducer({ connection: connection as never, prefix: engine.prefix }, backend)
    const queue = new Queue('token-lifecycle', { connection: connection as never, prefix: engine.prefix }, backend)
    closers.push(
      () => flows.close(),
      () => queue.close(),
      async () => pool?.end(),
    )
    await expectDropped({ tied: 1 }, async () => {
      const children = [
        { name: 'c', queueName: 'token-lifecycle', data: { jws: forge(own) }, opts: { jobId: 'j_child' } },
      ]
      await flows.add({ name: 'p', queueName: 'elsewhere', data: {}, opts: { jobId: 'j_parent' }, children })
    })
    await expectDropped({ tied: 1 }, () =>
      queue.upsertJobScheduler('forever', { every: 3_600_000 }, { name: 'x', data: { jws: forge(own) } }),
    )
  })

  // The queue plays no part in the other tests, so they run on one engine.
  if (engine.name === 'redis') return

  it('of another form than ours leaves nothing', async () => {
    const { publicJwk } = (await clients.findClientKeys(installation.vault.store, client.clientId))[0] ?? {
      publicJwk: {},
    }
    const headers: Json[] = [
      { alg: 'none' },
      { alg: 'HS256' },
      { alg: 'ES512' },
      { alg: ['EdDSA'] },
      { alg: undefined },
      { kid: undefined },
      { kid: 1 },
      { kid: 'k'.repeat(300) },
      { typ: undefined },
      { typ: 'JWT' },
      { typ: 'tokenmill-result+jwt' },
      { typ: 'TOKENMILL-JOB+JWT' },
      { jwk: publicJwk },
      { jku: 'http://127.0.0.1/jwks.json' },
      { x5c: ['AA'] },
      { x5u: 'http://127.0.0.1/' },
      { crit: ['b64'], b64: false },
      { b64: false },
      { crit: [] },
      { cty: 'JWT' },
      { zip: 'DEF' },
      { enc: 'A256GCM' },
    ]
    const hmac = hmacOver(own, publicJwk)
    await expectDropped({ header: headers.length + hmac.length }, () =>
      sendAll([...headers.map(header => ({ header })), ...hmac]),
    )
  })

  it('that is signed by nobody we know, or for somebody else, leaves nothing', async () => {
    const other = await installation.addClient('other')
    const [head = '', , signature = ''] = forge(own).split('.')
    const tampered = `${head}.${base64url(JSON.stringify(claimsOf(own)))}.${signature}`
    const forgeries: Record<string, (Forged | string)[]> = {
      signature: [
        { key: otherKey() },
        tampered,
        { header: { alg: 'RS256' } },
        { header: { alg: 'ES256' } },
        `${forge(own).split('.').slice(0, 2).join('.')}.AA`,
      ],
      unknown_key: [
        { header: { kid: 'other' } },
        { header: { kid: '' } },
        { claims: { iss: other.credentials.signingKey.clientId } },
        { claims: { iss: 'gateway' } },
      ],
      unknown_client: [
        { claims: { iss: undefined } },
        { claims: { iss: 'root' } },
        { claims: { iss: 1 } },
        { claims: { iss: `c${'a'.repeat(25)}` } },
        { claims: { iss: 'constructor' } },
      ],
      audience: [{ claims: { aud: undefined } }, { claims: { aud: 'other' } }, { claims: { aud: [own.audience] } }],
      claims: [
        ...[undefined, null, 1, '', 'a b', 'ä', 'x'.repeat(129), ['x'], 'a\nb'].map(jti => ({ claims: { jti } })),
        { claims: { client_id: other.credentials.signingKey.clientId } },
        { claims: { client_id: client.clientId } },
        { claims: { client_id: 'x' } },
      ],
    }
    const counts = Object.fromEntries(Object.entries(forgeries).map(([reason, some]) => [reason, some.length]))
    await expectDropped(counts, () => sendAll(Object.values(forgeries).flat()))
    // The other client gets no result either.
    expect(await installation.queues.depth(`results-${other.credentials.signingKey.clientId}`)).toMatchObject({
      waiting: 0,
      active: 0,
    })
  })

  it('that comes too late, too early or for too long is answered', async () => {
    const iat = nowSeconds()
    const { jwe } = own.captureKeys
    if (!jwe) throw new Error('the client has a JWE capture key')
    const encrypted_card = await encryptCard(
      { cardNumber: '4111111111111111', captureTime: new Date().toISOString() },
      jwe,
    )
    const create = {
      kind: 'token-create',
      request: { token_scope: installation.scope, encrypted_card, public_key_alias: jwe.alias },
    }
    const ways: [Json, string, string][] = [
      [{ iat: iat - 120, exp: iat - 60 }, 'body.exp', 'envelope_expired'],
      [{ iat: iat - 2 * DAY }, 'body.exp', 'envelope_expired'],
      [{ iat: iat + 90 }, 'body.iat', 'envelope_future'],
      [{ exp: iat }, 'body.exp', 'envelope_lifetime'],
      [{ exp: iat - 1 }, 'body.exp', 'envelope_lifetime'],
      [{ exp: iat + 7 * DAY + 60 }, 'body.exp', 'envelope_lifetime'],
      [{ ...create, exp: iat + DAY + 60 }, 'body.exp', 'envelope_lifetime'],
      [{ ...create, iat: iat - 3_700 }, 'body.exp', 'envelope_expired'],
      [{ ...create, sequence: 1 }, 'body.sequence', 'sequence_not_allowed'],
    ]
    const before = await traces()
    for (const [claims, field, code] of ways) {
      const jti = await send(installation.queues, own, { claims: { iat, ...claims } })
      expect(await desk.answer(jti)).toMatchObject({ code: 400, error: { details: { [field]: { code } } } })
    }
    expect(await traces()).toMatchObject({ receipts: before.receipts, tokens: before.tokens })
    // The corrected job may have the same jti.
    const jti = await send(installation.queues, own, { claims: { exp: iat - 1 } })
    await desk.answer(jti)
    // The answer comes before the job leaves its queue, and a queue ignores a job whose id it holds.
    const id = jobId(own.signingKey.clientId, jti)
    await until(async () => !(await installation.queues.has('token-lifecycle', id)), { what: 'the id to be free' })
    await send(installation.queues, own, { claims: { jti } })
    expect(await desk.answer(jti, { after: 1 })).toMatchObject({ code: 404 })
  })

  it('may say in `optional` what its worker does not know, and nowhere else', async () => {
    const hasReceipt = async (jti: string) => {
      const text = 'select 1 from tokenmill.receipt where receipt_id = $1'
      const { count } = await installation.vault.store.query({
        text,
        values: [receiptId(own.signingKey.clientId, jti)],
      })
      return count === 1
    }
    const unknown = { of_a_release_to_come: { deep: [1] } }
    const ignored = await send(installation.queues, own, { claims: { optional: { ...unknown, result_sets: true } } })
    expect(await desk.answer(ignored)).toMatchObject({ code: 404, jti: ignored })
    expect(await hasReceipt(ignored)).toBe(true)
    const ways: [Json, string, string][] = [
      [unknown, 'of_a_release_to_come', 'field_unknown'],
      [{ traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` }, 'traceparent', 'field_unknown'],
      [{ optional: [] }, 'optional', 'field_type'],
      [{ optional: { result_sets: 'yes' } }, 'optional.result_sets', 'field_value'],
      [{ optional: { traceparent: '00-1' } }, 'optional.traceparent', 'field_format'],
    ]
    for (const [claims, field, code] of ways) {
      const jti = await send(installation.queues, own, { claims })
      const { error, ...answer } = await desk.answer(jti)
      expect(answer).toMatchObject({ code: 400, status: 'FAILED' })
      expect(error?.details).toMatchObject({ [`body.${field}`]: { code } })
      expect(await hasReceipt(jti)).toBe(false)
    }
  })

  it('that asks for more than its client was granted is answered, and nothing is done', async () => {
    const poor = await installation.addClient('poor', { roles: ['TOKEN_READ'] })
    const listener = await installation.connect({ credentials: poor.credentials })
    const theirs = openDesk(listener)
    const before = await traces()
    const lifecycle = { id: TOKEN, action: 'DELETE' }
    const receipt = { receipt_id: '11111111-2222-4333-8444-555555555555', envelope: 'A'.repeat(43) }
    const ways: [Credentials, Json, string][] = [
      [poor.credentials, { request: lifecycle }, 'body.roles'],
      [poor.credentials, { kind: 'token-update', request: { id: TOKEN } }, 'body.roles'],
      [own, { roles: [] }, 'body.roles'],
      [own, { roles: ROLES.filter(role => role !== 'TOKEN_LIFECYCLE') }, 'body.roles'],
      [own, { entity_id: '11111111-2222-4333-8444-555555555555' }, 'body.entity_id'],
      [own, { kind: 'reversal', request: receipt }, 'body.kind'],
      [own, { kind: 'webhook', request: { delivery_id: receipt.receipt_id, attempt: 1 } }, 'body.kind'],
    ]
    for (const [credentials, claims, field] of ways) {
      const jti = await send(installation.queues, credentials, { claims })
      const answer = await (credentials === own ? desk : theirs).answer(jti)
      expect([400, 403]).toContain(answer.code)
      expect(Object.keys(answer.error?.details ?? {})).toEqual([field])
    }
    expect(await traces()).toMatchObject({ receipts: before.receipts, tokens: before.tokens })
  })

  it('of a system client is bounded by that client’s kinds, and answered to itself', async () => {
    const gateway = await systemCredentials(installation.dataDir, 'gateway', own)
    const scheduler = await systemCredentials(installation.dataDir, 'scheduler', own)
    const client_id = client.clientId
    const desks = new Map<Credentials, Desk>()
    for (const system of [gateway, scheduler])
      desks.set(system, openDesk(await installation.connect({ credentials: system }), client_id))
    const asked = async (system: Credentials, claims: Json) => {
      const jti = await send(installation.queues, system, { claims: { client_id, ...claims } })
      return desks.get(system)?.answer(jti)
    }
    expect(await asked(gateway, {})).toMatchObject({ code: 404 })
    expect(await asked(gateway, { roles: [] })).toMatchObject({ code: 403 })
    expect(await asked(scheduler, { kind: 'token-update', request: { id: TOKEN } })).toMatchObject({
      code: 403,
      error: { details: { 'body.kind': { code: 'role_missing' } } },
    })
    await expectDropped({ unknown_client: 1, signature: 1, unknown_key: 1 }, async () => {
      const jobs: [Credentials, Forged][] = [
        [gateway, { claims: { client_id: `c${'b'.repeat(25)}` } }],
        [gateway, { claims: { client_id }, key: own.signingKey.privateKey }],
        [own, { claims: { client_id, iss: 'scheduler' } }],
      ]
      for (const [credentials, forged] of jobs)
        await put(installation.queues, 'token-lifecycle', { jws: forge(credentials, forged) })
    })
  })

  it('by a key that was revoked does nothing any more within 10 s, nor does one of a revoked client', async () => {
    const { store } = installation.vault
    for (const [name, revoke] of [
      ['revoked-key', (id: string, kid: string) => clients.revokeKey(store, id, kid)],
      ['revoked-client', (id: string) => clients.revoke(store, id)],
    ] as const) {
      const { credentials } = await installation.addClient(name, { entity: ENTITY })
      const theirs = openDesk(await installation.connect({ credentials }))
      await theirs.answer(await send(installation.queues, credentials))
      const { clientId, kid } = credentials.signingKey
      expect(await revoke(clientId, kid)).toBe(true)
      const before = (await drops())['revoked'] ?? 0
      await until(
        async () => {
          await send(installation.queues, credentials)
          return ((await drops())['revoked'] ?? 0) > before
        },
        { what: 'the end of a revoked key' },
      )
      const { queued, answers } = await traces()
      await until(async () => (await traces()).queued <= queued)
      await expectDropped({ revoked: 2 }, async () => {
        await send(installation.queues, credentials)
        await send(installation.queues, credentials)
      })
      expect(answers).toBeLessThanOrEqual(desk.all().length)
    }
  })

  it('by a key that was retired verifies until its time has come, and no longer', async () => {
    const { credentials } = await installation.addClient('retired')
    const theirs = openDesk(await installation.connect({ credentials }))
    const { clientId, kid } = credentials.signingKey
    const end = Date.now() + 16_500
    expect(await clients.retireKey(installation.vault.store, clientId, kid, end)).toBe(true)
    await grantAll(installation.vault.store, installation.vault.ring)
    // Every worker has read the row by then, and caches it for some seconds.
    await until(() => Date.now() > end - 10_000)
    expect(await theirs.answer(await send(installation.queues, credentials), { ms: 9_900 })).toMatchObject({
      code: 404,
    })
    await until(() => Date.now() > end)
    await expectDropped({ revoked: 1 }, () => send(installation.queues, credentials))
  })
})

/** Base64url text with other unused last bits, which decodes to the same bytes. */
function nonCanonical(own: Credentials): string {
  for (let padding = ''; ; padding += ' ') {
    const text = base64url(JSON.stringify(claimsOf(own)) + padding)
    if (text.length % 4 === 0) continue
    const last = text.at(-1) ?? ''
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    return text.slice(0, -1) + (letters[letters.indexOf(last) + 1] ?? '_')
  }
}

/** Envelopes signed by HMAC with the public key: as bytes, as JSON and as text. */
function hmacOver(own: Credentials, publicJwk: Json): string[] {
  const head = { alg: 'HS256', kid: own.signingKey.kid, typ: 'tokenmill-job+jwt' }
  const signed = `${base64url(JSON.stringify(head))}.${base64url(JSON.stringify(claimsOf(own)))}`
  const x = String(publicJwk['x'])
  const secrets = [Buffer.from(x, 'base64url'), Buffer.from(x), Buffer.from(JSON.stringify(publicJwk)), Buffer.alloc(0)]
  return secrets.map(secret => `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`)
}
