// INTERFACE 2.8, 5 and 7 with the last rows of CONTRACT 8: what an error is, and which of several comes first.
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Role } from '../../../../src/job/catalogue.ts'
import { describeStore } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { type Answer, basicOf, CARD, type Caller, encrypted, openGatewayFor } from '../bundle.ts'

const VISA = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030 }
const NOBODY = `${CARD}/t${'0'.repeat(26)}`
const MESSAGES: Record<number, string> = {
  400: 'At least one parameter is invalid; see details.',
  401: 'Valid credentials are required; check the Authorization header.',
  403: 'Your roles do not permit this query.',
  404: 'The resource, or one nested in it, was not found, deleted or modified; see details.',
}

/** Expects exactly the fields of INTERFACE 2.8. */
function expectProblem(answer: Answer, status: number, details?: Record<string, string>): void {
  expect(answer.status).toBe(status)
  const { details: given, timestamp, ...rest } = answer.body
  expect(rest).toEqual({ code: status, message: MESSAGES[status], reversal_status: 'NONE' })
  expect(Math.abs(Number(timestamp) - Date.now())).toBeLessThan(60_000)
  const reasons = Object.entries((given ?? {}) as Record<string, { code: string; message: string }>)
  for (const [field, { message }] of reasons) {
    expect(field).toMatch(/^(body|query|params)(\.|$)/)
    expect(message).toMatch(/\.$/)
  }
  if (details) expect(Object.fromEntries(reasons.map(([field, { code }]) => [field, code]))).toEqual(details)
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
}

describeStore('errors', engine => {
  let installation: Installation
  let caller: Caller
  const known = new Map<string, Promise<string>>()
  /** Registers a client with these roles, once. Returns its credentials. */
  const as = (roles: Role[]) => {
    const name = roles.join('-')
    const made =
      known.get(name) ?? installation.addClient(name, { roles }).then(({ clientFile }) => basicOf(clientFile))
    known.set(name, made)
    return made
  }

  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['interactive'] })
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  describe('the order of checks: 401, form 400, 403, 404, content 400', () => {
    it('401 comes before everything, the body’s form and its type included', async () => {
      for (const [method, path, options] of [
        ['PUT', CARD, { body: '{' }],
        ['PUT', CARD, { body: 'x'.repeat(70_000), headers: { 'content-type': 'text/plain' } }],
        ['GET', `${CARD}/short`, {}],
        ['PATCH', NOBODY, { body: { no: 1 } }],
      ] as const)
        expectProblem(await caller.call(method, path, { ...options, authorization: null }), 401, {})
    })
    it('a compressed body is 400 and named, after 401 and before the form', async () => {
      for (const encoding of ['gzip', 'br', 'identity, deflate', 'x']) {
        const headers = { 'content-encoding': encoding }
        expectProblem(await caller.call('PUT', CARD, { body: '{', headers }), 400, { body: 'body_encoding' })
        expectProblem(await caller.call('PUT', CARD, { body: '{', headers, authorization: null }), 401, {})
      }
      const headers = { 'content-encoding': 'identity' }
      expectProblem(await caller.call('PUT', CARD, { body: '{', headers }), 400, { body: 'body_json' })
    })
    it('the form comes before 403', async () => {
      const reader = await as(['TOKEN_READ'])
      expectProblem(await caller.call('PUT', CARD, { authorization: reader, body: {} }), 400, {
        'body.token_scope': 'field_required',
        'body.encrypted_card': 'field_required',
        'body.public_key_alias': 'field_required',
      })
      expectProblem(await caller.call('DELETE', `${CARD}/short`, { authorization: reader }), 400, {
        'params.id': 'field_length',
      })
    })
    it('403 comes before 404', async () => {
      const writer = await as(['TOKEN_WRITE'])
      expectProblem(await caller.call('GET', NOBODY, { authorization: writer }), 403)
      expectProblem(await caller.call('DELETE', NOBODY, { authorization: writer }), 403)
    })
    it('404 comes before what is wrong with the content', async () => {
      const bad = { encrypted_card: 'not.a.card', public_key_alias: 'nobodys' }
      expectProblem(await caller.call('PATCH', NOBODY, { body: bad }), 404, { 'params.id': 'token_not_found' })
      expectProblem(await caller.call('PATCH', NOBODY, { body: { token_expiry_date: '2001-01-01' } }), 404)
    })
    it('content comes last, and a forbidden scope before it', async () => {
      const bad = { encrypted_card: 'not.a.card', public_key_alias: installation.credentials.captureKeys.jwe?.alias }
      expectProblem(await caller.put(VISA, { ...bad, token_scope: randomUUID() }), 403)
      expectProblem(await caller.put(VISA, bad), 400, { 'body.encrypted_card': 'card_undecryptable' })
    })
  })

  describe('roles (7)', () => {
    it.each([
      ['PUT', CARD, 'TOKEN_WRITE'],
      ['PATCH', NOBODY, 'TOKEN_WRITE'],
      ['GET', NOBODY, 'TOKEN_READ'],
      ['DELETE', NOBODY, 'TOKEN_LIFECYCLE'],
      ['PATCH', `${NOBODY}/suspend`, 'TOKEN_LIFECYCLE'],
      ['PATCH', `${NOBODY}/activate`, 'TOKEN_LIFECYCLE'],
    ] as const)('%s %s needs %s', async (method, path, role) => {
      const others = await as((['TOKEN_WRITE', 'TOKEN_READ', 'TOKEN_LIFECYCLE'] as Role[]).filter(one => one !== role))
      const body =
        method === 'PUT'
          ? { token_scope: installation.scope, ...(await encrypted(VISA, installation.credentials)) }
          : path === NOBODY && method === 'PATCH'
            ? {}
            : undefined
      expectProblem(await caller.call(method, path, { authorization: others, ...(body && { body }) }), 403)
      const granted = await caller.call(method, path, { authorization: await as([role]), ...(body && { body }) })
      expect(granted.status).toBe(method === 'PUT' ? 200 : 404)
    })
    it('scheme_token_action also needs SCHEME_TOKEN', async () => {
      const writer = await as(['TOKEN_WRITE'])
      const answer = await caller.call('PATCH', NOBODY, {
        authorization: writer,
        body: { scheme_token_action: 'ACTIVATE' },
      })
      expectProblem(answer, 403, { 'body.scheme_token_action': 'role_missing' })
      expect(answer.text).toContain('The role SCHEME_TOKEN is missing.')
    })
  })

  describe('bodies', () => {
    const raw = (body: string, type = 'application/json') =>
      caller.call('PUT', CARD, { body, headers: { 'content-type': type } })
    it('that are no JSON object, or name a member twice, are 400 on body', async () => {
      for (const bad of [
        '{',
        '[]',
        '"text"',
        'null',
        '12',
        '{"a":1}}',
        '{"a":1,"a":1}',
        '{"a":{"b":1,"b":2}}',
        '{"token_scope":"\u0001"}',
      ])
        expectProblem(await raw(bad), 400, { body: 'body_json' })
    })
    it('that aren’t UTF-8 are 400 on body', async () => {
      const answer = await fetch(`${caller.url}${CARD}`, {
        method: 'PUT',
        headers: { authorization: caller.authorization, 'content-type': 'application/json' },
        body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      })
      expect([answer.status, await answer.json()]).toMatchObject([400, { details: { body: { code: 'body_json' } } }])
    })
    it('of another type are 400 on body, as is none where one is needed', async () => {
      for (const type of [
        'text/plain',
        'application/xml',
        'application/x-www-form-urlencoded',
        'application/jsonp',
        'nonsense',
      ])
        expectProblem(await raw('{}', type), 400, { body: 'body_media_type' })
      expectProblem(await caller.call('PUT', CARD), 400, { body: 'field_required' })
    })
    it('above 64 KiB are 400 on body', async () => {
      expectProblem(await raw(`{"token_scope":"${'x'.repeat(65_536)}"}`), 400, { body: 'body_too_large' })
    })
    it('with unknown fields are 400, and made-up names aren’t repeated', async () => {
      expectProblem(await caller.put(VISA, { colour: 'red' }), 400, { 'body.colour': 'field_unknown' })
      const onFile = { on_file: { provider: 'p', card_id: 'c' } }
      expectProblem(await caller.put(VISA, onFile), 400, { 'body.on_file': 'field_unknown' })
      const patch = await caller.call('PATCH', `${CARD}/t01HZXB5KXQ8J5N4R6V7W8X9Y0Z`, { body: onFile })
      expectProblem(patch, 400, { 'body.on_file': 'field_unknown' })
      const answer = await caller.put(VISA, { '4111 1111 1111 1111': 1 })
      expectProblem(answer, 400, { 'body.(unnamed)': 'field_unknown' })
      expect(answer.text).not.toContain('4111')
    })
    it('cannot reach a prototype', async () => {
      for (const name of ['__proto__', 'constructor', 'prototype', 'toString'])
        expect((await raw(`{"${name}":{"token_scope":"${installation.scope}"}}`)).status).toBe(400)
      expect(({} as Record<string, unknown>)['token_scope']).toBeUndefined()
    })
    it('list every field that is wrong, by its path', async () => {
      const body = {
        token_scope: 'x',
        encrypted_card: 1,
        public_key_alias: 'a b',
        token_context: { entity_id: 'y', z: 1 },
      }
      expectProblem(await caller.call('PUT', CARD, { body }), 400, {
        'body.token_scope': 'field_format',
        'body.encrypted_card': 'field_type',
        'body.public_key_alias': 'field_format',
        'body.token_context.entity_id': 'field_format',
        'body.token_context.z': 'field_unknown',
      })
    })
    it('hold no control characters and no lone surrogates', async () => {
      for (const card_holder_name of ['A\nB', 'A\u0000', '\ud800', 'A\u2028B'])
        expectProblem(await caller.call('PATCH', NOBODY, { body: { card_holder_name } }), 400, {
          'body.card_holder_name': 'field_characters',
        })
    })
  })

  describe('a request that is wrong in several parts', () => {
    const key = { 'idempotency-key': 'with blank' }
    it('is told all of them at once: path, body, query and headers', async () => {
      const body = { no: 1, expiry_month: 13 }
      expectProblem(await caller.call('PATCH', `${CARD}/short`, { body, headers: key }), 400, {
        'params.id': 'field_length',
        'body.no': 'field_unknown',
        'body.expiry_month': 'field_range',
        'params.idempotency-key': 'field_format',
      })
      const rows = { body: 'a,b', headers: { ...key, 'content-type': 'text/csv' } }
      expectProblem(await caller.call('POST', '/oidc/api/v2/batches?kind=x&dry_run=maybe', rows), 400, {
        'query.kind': 'field_value',
        'query.dry_run': 'field_value',
        'params.idempotency-key': 'field_format',
      })
    })
    it('is told the rest beside a body that cannot be read', async () => {
      expectProblem(await caller.call('PATCH', `${CARD}/short`, { body: '{' }), 400, {
        'params.id': 'field_length',
        body: 'body_json',
      })
      const text = { body: 'x', headers: { 'content-type': 'text/plain' } }
      expectProblem(await caller.call('POST', '/oidc/api/v2/batches?kind=x', text), 400, {
        body: 'body_media_type',
        'query.kind': 'field_value',
      })
    })
    it('is told the rest beside a body where none is taken', async () => {
      expectProblem(await caller.call('PATCH', `${CARD}/short/suspend`, { body: { now: true }, headers: key }), 400, {
        'params.id': 'field_length',
        body: 'field_unknown',
        'params.idempotency-key': 'field_format',
      })
    })
    it('is told nothing of them before its credentials are good', async () => {
      expectProblem(await caller.call('PATCH', `${CARD}/short`, { body: '{', authorization: null }), 401, {})
    })
  })

  describe('paths and methods', () => {
    it('that are not there are 404 in the same body', async () => {
      for (const [method, path] of [
        ['GET', '/oidc/api/v2/cards'],
        ['GET', '/oidc/api'],
        ['POST', '/'],
        ['POST', CARD],
        ['GET', CARD],
        ['PUT', NOBODY],
        ['POST', `${NOBODY}/suspend`],
        ['DELETE', `${NOBODY}/activate`],
        ['OPTIONS', CARD],
        ['GET', '/oidc/api/v1/card/t00000000000000'],
        ['GET', '/oidc/../etc/passwd'],
      ] as const)
        expectProblem(await caller.call(method, path), 404, { params: 'path_unknown' })
    })
    it('badly encoded are 400', async () => {
      expectProblem(await caller.call('GET', '/oidc/%E0%A4%A'), 400)
    })
  })

  it('bytes that are no HTTP get the same body, and the connection ends', async () => {
    for (const bytes of [
      'NONSENSE\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      `GET / HTTP/1.1\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
    ]) {
      const text = await exchange(caller.gateway.port, bytes)
      expect(text).toMatch(/^HTTP\/1\.1 400 /)
      expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toMatchObject({ code: 400, message: MESSAGES[400] })
    }
  })
})

function exchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.setTimeout(60_000, () => socket.destroy(new Error('timed out')))
    socket.on('data', chunk => {
      text += chunk
    })
    socket.once('close', () => resolve(text))
    socket.once('error', reject)
  })
}
