// Every field of every kind, wrong in many ways: the answer is always 400 with the field's name and without its value,
// and the worker goes on. INTERFACE 2.8, CONTRACT 3 and 4.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { jobId } from '../../src/job/envelope/ids.ts'
import { blockDigest, sealBlock } from '../../src/vault/capture/block.ts'
import { encryptCard, type PublicCaptureKey } from '../../src/vault/capture/encrypt.ts'
import { describeStore } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { claimsOf, type Desk, forge, type Json, openDesk, send } from './forge.ts'
import { type Counters, openCounters } from './metrics.ts'
import { laid, MARK, RIGHT_RECORDS, type Right, rightRequests, TOKEN, textOf, wrongWays } from './wrong.ts'

const WINDOW = 250
/** Stands for the digest of the job's own block. */
const UNNAMED = '0'.repeat(64)

describeStore('a field that is wrong', engine => {
  let installation: Installation
  let client: Client
  let desk: Desk
  let counters: Counters
  let rights: Right[]
  let jwe: PublicCaptureKey
  let began: string
  beforeAll(async () => {
    installation = await openInstallation(engine)
    counters = openCounters(await installation.startWorkers())
    client = await installation.connect()
    desk = openDesk(client)
    began = await counters.began()
    const { captureKeys } = installation.credentials
    if (!captureKeys.jwe) throw new Error('the client has a JWE capture key')
    jwe = captureKeys.jwe
    const card = { cardNumber: '4111111111111111', captureTime: new Date().toISOString() }
    const sealed = { encrypted_card: await encryptCard(card, jwe), public_key_alias: jwe.alias }
    const batch = {
      batch_id: 'fields',
      chunk: 0,
      chunk_records: 500,
      record_kind: 'token-create',
      token_scope: installation.scope,
      accepted_at: Math.floor(Date.now() / 1000),
      policy: { on_conflict: 'update', on_expired: 'import' },
      dry_run: false,
      block: { sha256: UNNAMED, records: 1, public_key_alias: jwe.alias },
    }
    rights = rightRequests(installation.scope, ENTITY, sealed, batch)
  })
  afterAll(() => installation?.close())

  interface Sent {
    name: string
    field: string
    kind: string
    payload: string
    jti: string
  }
  const queuedOf = async (kind: string, jti: string, payload: string) => {
    const id = jobId(client.clientId, jti)
    if (kind !== 'token-batch') return { id, data: { jws: forge(installation.credentials, { payload }) } }
    const block = await sealBlock('{"line":1,"rejected":{"reason":"row_utf8"}}', jwe, { iss: client.clientId, jti })
    const jws = forge(installation.credentials, { payload: payload.replace(UNNAMED, blockDigest(block)) })
    return { id, data: { jws, block } }
  }
  const answersOf = async (all: Sent[]): Promise<{ sent: Sent; answer: Result }[]> => {
    const found: { sent: Sent; answer: Result }[] = []
    for (let start = 0; start < all.length; start += WINDOW) {
      const some = all.slice(start, start + WINDOW)
      const byKind = Map.groupBy(some, ({ kind }) => kind)
      for (const [kind, jobs] of byKind) {
        const queued = await Promise.all(jobs.map(({ jti, payload }) => queuedOf(kind, jti, payload)))
        for (let from = 0; from < queued.length; from += 20)
          await installation.queues.addBulk(kind, queued.slice(from, from + 20))
      }
      found.push(...(await Promise.all(some.map(async sent => ({ sent, answer: await desk.answer(sent.jti) })))))
    }
    return found
  }
  /** One line for each answer that isn't as expected. */
  const broken = (answers: { sent: Sent; answer: Result }[]) =>
    answers.flatMap(({ sent, answer }) => {
      const fields = Object.keys(answer.error?.details ?? {})
      const named = fields.some(
        field => field === sent.field || field.startsWith(`${sent.field}.`) || sent.field.startsWith(`${field}.`),
      )
      const says = `${sent.kind} ${sent.name}: ${answer.code} ${fields.join(' ').slice(0, 200)}`
      return [
        ...(answer.code === 400 ? [] : [`not 400: ${says}`]),
        ...(named ? [] : [`not named: ${says}`]),
        ...(fields.every(field => field.startsWith('body.')) ? [] : [`without prefix: ${says}`]),
        ...(JSON.stringify(answer.error).includes(MARK) ? [`repeated: ${says}`] : []),
      ]
    })
  const isAlive = async () => {
    const kind = 'token-lifecycle'
    const jti = await send(installation.queues, installation.credentials, {
      claims: { kind, request: { id: TOKEN, action: 'SUSPEND' } },
    })
    expect(await desk.answer(jti)).toMatchObject({ code: 404 })
    expect(await counters.began()).toBe(began)
  }

  it('is one of a table that holds every kind', () => {
    expect(rights.map(({ kind }) => kind).sort()).toEqual([...CATALOGUE.kinds].sort())
  })

  it('of a request is answered 400 by name, whatever is wrong with it', async () => {
    const all = rights.flatMap(({ kind, request, required }) =>
      [...wrongWays(request, required)].map((wrong, index) => {
        const jti = `request-${kind}-${index}`
        const field = wrong.path.at(-1) === '__proto__' ? 'body' : ['body', ...wrong.path].join('.')
        const payload = textOf(claimsOf(installation.credentials, { kind, jti, request: wrong.request }))
        return { name: `${wrong.path.join('.')} ${wrong.what}`, field, kind, payload, jti }
      }),
    )
    expect(all.length).toBeGreaterThan(700)
    // The schemas are the same on both engines; only the storage of texts in the queue differs.
    const some = engine.name === 'redis' ? all : all.filter((_, index) => index % 4 === 0)
    expect(broken(await answersOf(some))).toEqual([])
    await isAlive()
  })

  it('of the claims is answered 400 by name, whatever is wrong with it', async () => {
    const good = claimsOf(installation.credentials, {
      reference: 'r',
      sequence: 1,
      reply_to: 'fields',
      exp: Math.floor(Date.now() / 1000) + 60,
    })
    const { iss, aud, ...open } = good
    const all = [...wrongWays(open, ['sub', 'entity_id', 'roles', 'iat', 'kind', 'request'])]
      .filter(({ path }) => path[0] !== 'jti' && path.length === 1)
      // An absent list of roles is wrong, an empty one only grants nothing.
      .filter(({ path, what }) => !(path[0] === 'roles' && what === 'is an empty array'))
      .filter(({ path, what }) => !(path[0] === 'request' && what === 'is an object'))
      .filter(
        ({ path, what }) =>
          !(['iat', 'exp'].includes(path[0] ?? '') && ['is a fraction', 'is beyond exactness'].includes(what)),
      )
      .map((wrong, index) => {
        const jti = `claims-${index}`
        const { reply_to: _, ...unaddressed } = wrong.request as Json
        // The answer to a job with another reply queue wouldn't arrive here.
        const claims = { iss, aud, ...(wrong.path[0] === 'reply_to' ? (wrong.request as Json) : unaddressed), jti }
        return {
          name: `${wrong.path.join('.')} ${wrong.what}`,
          field: `body.${wrong.path.join('.')}`,
          kind: 'token-lifecycle',
          payload: textOf(claims),
          jti,
        }
      })
    expect(all.length).toBeGreaterThan(120)
    expect(broken(await answersOf(all))).toEqual([])
    await isAlive()
  })

  // The queue holds only ciphertext of a record, so one engine is enough.
  if (engine.name === 'postgres') return

  it('of a record rejects that record by name, and no other', async () => {
    for (const [record_kind, request] of Object.entries(RIGHT_RECORDS)) {
      const heads = [
        { reference: MARK.repeat(10) },
        { reference: `a\u0000${MARK}` },
        { reference: `a\ud800${MARK}` },
        { reference: [MARK] },
        { [`${MARK}-0000`]: MARK },
        { rejected: MARK },
        { rejected: { reason: MARK } },
        { request: MARK },
        { request: [] },
        { request: undefined },
      ].map(head => ({ request, ...head }))
      const wrong = [...wrongWays(request, [])].filter(({ what }) => !/far too long|without end/.test(what))
      const records = [...wrong, ...heads].map((made, index) =>
        textOf({
          line: index + 2,
          ...((heads as unknown[]).includes(made) ? made : { request: (made as { request: unknown }).request }),
        }),
      )
      const lines = [
        textOf({ line: 1, request }),
        ...records,
        ...[
          'null',
          '1',
          '"x"',
          '[]',
          '{',
          '',
          '{}',
          `{"line":-1,"request":{}}`,
          `{"line":1e99}`,
          `{"line":"${MARK}"}`,
          '['.repeat(30_000) + ']'.repeat(30_000),
        ].filter(Boolean),
        `{"line":7000,"reference":"${MARK.repeat(6_000)}"}`,
      ]
      const bytes = Buffer.concat([
        Buffer.from(`${lines.join('\n')}\n`),
        Buffer.from([0x7b, 0xff, 0x7d, 0x0a]),
        Buffer.from(`{"line":8000,"reference":"\xff","request":${textOf(request)}}`, 'latin1'),
      ])
      const count = lines.length + 2
      const jti = `records-${record_kind}-0`
      const sealed = await sealBlock(bytes, jwe, { iss: client.clientId, jti })
      const batch = {
        batch_id: `records-${record_kind}`,
        chunk: 0,
        chunk_records: 1000,
        record_kind,
        token_scope: installation.scope,
        accepted_at: Math.floor(Date.now() / 1000),
        block: { sha256: blockDigest(sealed), records: count, public_key_alias: jwe.alias },
      }
      await send(installation.queues, installation.credentials, {
        claims: { kind: 'token-batch', jti, request: batch },
        block: sealed,
      })
      const answer = await desk.answer(jti)
      expect(answer).toMatchObject({ code: 200 })
      const outcomes = answer.records ?? []
      expect(outcomes).toHaveLength(count)
      const rejected = outcomes.filter(({ outcome }) => outcome === 'REJECTED')
      expect(outcomes.filter(({ outcome }) => outcome !== 'REJECTED')).toMatchObject(
        record_kind === 'token-create' ? [{ line: 1, outcome: 'CREATED' }] : [],
      )
      expect(
        rejected.every(
          ({ code, reason, field }) =>
            code >= 400 && code < 500 && reason && (field === undefined || field.startsWith('body')),
        ),
      ).toBe(true)
      const named = wrong.map(({ path }, index) => {
        const { field = '', reason } = rejected.find(({ line }) => line === index + 2) ?? {}
        const wanted = path.at(-1) === '__proto__' ? 'body' : ['body', ...path].join('.')
        // A refusal of the card's content names the card.
        const ok = wanted.startsWith(field) || field.startsWith(wanted)
        return ok ? '' : `${path.join('.')}: ${reason} ${field}`
      })
      expect(named.filter(Boolean)).toEqual([])
      expect(JSON.stringify(answer)).not.toContain(MARK)
    }
    await isAlive()
  })

  it('made up at random is never a fault of ours', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const any = fc.oneof(
      fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' }),
      fc.constantFrom(...['__proto__', 'constructor', '\u0000', '\ud800', '4111111111111111', 1e308, -0, 2 ** 63]),
      fc.string({ unit: 'binary', maxLength: 200 }),
    )
    const made = fc.tuple(fc.nat(), fc.nat(), fc.nat(3), fc.string({ unit: 'binary', maxLength: 40 }), any)
    const all = fc.sample(made, { numRuns: 500, seed }).map(([which, where, how, key, value], index): Sent => {
      const { kind, request } = rights[which % rights.length] as Right
      const jti = `random-${index}`
      const names = Object.keys(request)
      const field = names[where % names.length] ?? ''
      const changed = [laid(request, [field], value), laid(request, [key], value), value, request][how]
      const claims: Json = { kind, jti, request: changed, ...(how === 3 ? { [key || 'x']: value } : {}) }
      const { iss, aud } = claimsOf(installation.credentials)
      const payload = JSON.stringify({
        ...claimsOf(installation.credentials),
        ...claims,
        iss,
        aud,
        jti,
        kind,
        reply_to: undefined,
      })
      return { name: `${index} of seed ${seed}`, field: 'body', kind, payload, jti }
    })
    const answers = await answersOf(all)
    const wrong = answers.filter(({ answer }) => ![200, 204, 400, 403, 404].includes(answer.code))
    expect(wrong.map(({ sent, answer }) => `${sent.name}: ${answer.code} ${sent.payload.slice(0, 500)}`)).toEqual([])
    const nameless = answers.filter(
      ({ answer }) => answer.error && !Object.keys(answer.error.details ?? {}).every(field => field.startsWith('body')),
    )
    expect(nameless.map(({ sent }) => `${sent.name}: ${sent.payload.slice(0, 500)}`)).toEqual([])
    await isAlive()
  })
})
