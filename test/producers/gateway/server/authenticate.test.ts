// INTERFACE 5 and CONTRACT 8 on credentials: Basic, and JWTs of a client's own key or of an issuer the operator named.
import { execFileSync } from 'node:child_process'
import { createPrivateKey, generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { SignJWT, UnsecuredJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { grantClientKey, NEW_KEY } from '../../../../src/acts/grants.ts'
import * as clients from '../../../../src/store/access/clients.ts'
import { describeStore } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { until } from '../../../support/until.ts'
import { basicOf, CARD, type Caller, openGatewayFor } from '../bundle.ts'

const NOBODY = `${CARD}/t${'0'.repeat(26)}`
/** The answer about an unknown token to a caller that is authenticated. */
const BELIEVED = 404

interface Issuer {
  server: Server
  url: string
  keys: Record<string, unknown>[]
  asked: number
  answer?: { status: number; body: string; headers?: Record<string, string> }
}

async function openIssuer(): Promise<Issuer> {
  const issuer = { keys: [], asked: 0 } as unknown as Issuer
  issuer.server = createServer((_request, response) => {
    issuer.asked += 1
    const { status, body, headers } = issuer.answer ?? { status: 200, body: JSON.stringify({ keys: issuer.keys }) }
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  })
  await new Promise<void>(resolve => issuer.server.listen(0, '127.0.0.1', resolve))
  issuer.url = `127.0.0.1:${(issuer.server.address() as AddressInfo).port}`
  return issuer
}

describeStore('credentials', engine => {
  let installation: Installation
  let caller: Caller
  let issuer: Issuer
  let userId: string
  let apiKey: string
  let entityId: string
  let own: { kid: string; alg: string; key: KeyObject }
  const foreign = generateKeyPairSync('ed25519')

  const ask = async (authorization: string | null) => (await caller.call('GET', NOBODY, { authorization })).status
  const basic = (user: string, key: string) => `Basic ${Buffer.from(`${user}:${key}`).toString('base64')}`
  const claims = (more: Record<string, unknown> = {}) => ({
    sub: userId,
    entity_id: entityId,
    roles: ['TOKEN_READ', 'TOKEN_WRITE'],
    ...more,
  })
  const now = () => Math.floor(Date.now() / 1000)
  const signed = async (
    payload: Record<string, unknown>,
    { key = own.key, header = {} }: { key?: KeyObject; header?: Record<string, unknown> } = {},
  ) =>
    `Bearer ${await new SignJWT({ exp: now() + 300, ...payload }).setProtectedHeader({ alg: own.alg, kid: own.kid, ...header }).sign(key)}`

  beforeAll(async () => {
    installation = await openInstallation(engine)
    issuer = await openIssuer()
    issuer.keys.push({ ...foreign.publicKey.export({ format: 'jwk' }), kid: 'issuer-1', alg: 'EdDSA' })
    caller = await openGatewayFor(installation, {
      TOKENMILL_JWT_ISSUERS: `https://login.example=http://${issuer.url}/jwks,inside=http://127.0.0.2:1/jwks`,
      TOKENMILL_PRIVATE_HOSTS: issuer.url,
    })
    const file = JSON.parse(await readFile(installation.clientFile, 'utf8')) as Record<string, string>
    userId = file['user_id'] ?? ''
    apiKey = file['api_key'] ?? ''
    entityId = file['entity_id'] ?? ''
    const jwk = JSON.parse(await readFile(file['signing_key_file'] ?? '', 'utf8')) as JsonWebKey & {
      kid: string
      alg: string
    }
    own = { kid: jwk.kid, alg: jwk.alg, key: createPrivateKey({ key: jwk, format: 'jwk' }) }
  })
  afterAll(async () => {
    await caller?.close()
    issuer?.server.close()
    await installation?.close()
  })

  describe('Basic: the user’s UUID and the API key', () => {
    it('are believed, in any case of the UUID and of the scheme', async () => {
      expect(await ask(basic(userId, apiKey))).toBe(BELIEVED)
      expect(await ask(basic(userId.toUpperCase(), apiKey).replace('Basic', 'bAsIc'))).toBe(BELIEVED)
    })
    it('wrong in whatever way are the same 401', async () => {
      const other = await installation.addClient('other')
      const otherKey = (JSON.parse(await readFile(other.clientFile, 'utf8')) as { api_key: string }).api_key
      const bodies = new Set<string>()
      for (const authorization of [
        null,
        '',
        'Basic',
        'Basic ',
        'Basic !!!',
        basic(userId, ''),
        basic(userId, `${apiKey} `),
        basic(userId, otherKey),
        basic(randomUUID(), apiKey),
        basic('', apiKey),
        basic("' or 1=1 --", apiKey),
        basic(installation.credentials.signingKey.clientId, apiKey),
        `Basic ${userId}:${apiKey}`,
        `Digest ${apiKey}`,
        `Bearer ${apiKey}`,
        `Basic ${'A'.repeat(9_000)}`,
      ]) {
        const answer = await caller.call('GET', NOBODY, { authorization })
        expect(answer.status).toBe(401)
        expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm="tokenmill", charset="UTF-8", Bearer /)
        bodies.add(JSON.stringify({ ...answer.body, timestamp: 0 }))
      }
      expect(bodies.size).toBe(1)
    })
    it('of a system client are never any', async () => {
      const gateway = await clients.find(installation.vault.store, 'gateway')
      expect(await ask(basic(gateway?.userId ?? '', apiKey))).toBe(401)
      expect(await ask(basic(gateway?.userId ?? '', ''))).toBe(401)
    })
    it('of a revoked client are none, once what is cached has ended', async () => {
      const doomed = await installation.addClient('doomed')
      const authorization = await basicOf(doomed.clientFile)
      expect(await ask(authorization)).toBe(BELIEVED)
      await clients.revoke(installation.vault.store, doomed.credentials.signingKey.clientId)
      await until(async () => (await ask(authorization)) === 401)
    })
  })

  describe('a JWT by a key registered for the client', () => {
    it('is believed', async () => {
      expect(await ask(await signed(claims()))).toBe(BELIEVED)
      expect(
        await ask(await signed(claims({ aud: 'tokenmill', iss: 'whoever', iat: now() }), { header: { typ: 'JWT' } })),
      ).toBe(BELIEVED)
    })
    it('is made by the program in docs/http.md', async () => {
      const page = await readFile(new URL('../../../../docs/http.md', import.meta.url), 'utf8')
      const [, program = ''] = /```js\n([\s\S]+?)```/.exec(page) ?? []
      const root = fileURLToPath(new URL('../../../../', import.meta.url))
      const args = ['--input-type=module', '-', installation.clientFile, 'TOKEN_READ']
      const jwt = execFileSync(process.execPath, args, { cwd: root, input: program, encoding: 'utf8' })
      expect(await ask(`Bearer ${jwt.trim()}`)).toBe(BELIEVED)
    })
    it('has the roles that it claims and the client was granted, no others', async () => {
      expect(await ask(await signed(claims({ roles: ['TOKEN_WRITE'] })))).toBe(403)
      expect(await ask(await signed(claims({ roles: [] })))).toBe(403)
      expect(await ask(await signed(claims({ roles: ['ADMIN', 'EMPEROR'] })))).toBe(403)
      const weak = await installation.addClient('weak', { roles: ['TOKEN_WRITE'] })
      const file = JSON.parse(await readFile(weak.clientFile, 'utf8')) as Record<string, string>
      const jwk = JSON.parse(await readFile(file['signing_key_file'] ?? '', 'utf8')) as JsonWebKey & { kid: string }
      const key = createPrivateKey({ key: jwk, format: 'jwk' })
      const token = await signed(claims({ sub: file['user_id'] }), { key, header: { kid: jwk.kid } })
      expect(await ask(token)).toBe(403)
    })
    it('for an entity that isn’t the client’s is 403', async () => {
      expect(await ask(await signed(claims({ entity_id: randomUUID() })))).toBe(403)
    })
    it.each(['sub', 'entity_id'])('without %s is 401', async name => {
      expect(await ask(await signed({ ...claims(), [name]: undefined }))).toBe(401)
    })
    it('without roles, or with too few, is 403, also where no certain role is asked for', async () => {
      const challenged = 'Bearer realm="tokenmill", error="insufficient_scope"'
      for (const roles of [undefined, [], ['REPORT_READ']]) {
        const answer = await caller.call('GET', NOBODY, { authorization: await signed(claims({ roles })) })
        expect(answer.status).toBe(403)
        expect(answer.headers.get('www-authenticate')).toContain(challenged)
      }
      const authorization = await signed(claims({ roles: undefined }))
      const operation = await caller.call('GET', `/oidc/api/v2/operations/${randomUUID()}`, { authorization })
      expect(operation.status).toBe(403)
    })
    it('without exp holds for one hour from iat, and no longer', async () => {
      expect(await ask(await signed(claims({ exp: undefined, iat: now() })))).toBe(BELIEVED)
      expect(await ask(await signed(claims({ exp: undefined, iat: now() - 3_500 })))).toBe(BELIEVED)
      expect(await ask(await signed(claims({ exp: undefined, iat: now() - 3_600 })))).toBe(401)
      expect(await ask(await signed(claims({ exp: undefined })))).toBe(401)
    })
    it('without kid is by the only active key of the user, retired ones beside it or not', async () => {
      const unnamed = { header: { kid: undefined } }
      expect(await ask(await signed(claims(), unnamed))).toBe(BELIEVED)
      expect(await ask(await signed(claims(), { ...unnamed, key: foreign.privateKey }))).toBe(401)

      const two = await installation.addClient('two-keys')
      const file = JSON.parse(await readFile(two.clientFile, 'utf8')) as Record<string, string>
      const jwk = JSON.parse(await readFile(file['signing_key_file'] ?? '', 'utf8')) as JsonWebKey
      const key = createPrivateKey({ key: jwk, format: 'jwk' })
      const token = () => signed(claims({ sub: file['user_id'] }), { ...unnamed, key })
      const { clientId } = two.credentials.signingKey
      const store = installation.vault.store
      const publicJwk = foreign.publicKey.export({ format: 'jwk' }) as Record<string, unknown>
      const second = { clientId, kid: 'second', alg: 'EdDSA' as const, publicJwk }
      await clients.insertKey(store, second)
      await grantClientKey(store, installation.vault.ring, { ...second, ...NEW_KEY })
      await installation.signRights()
      expect(await ask(await token())).toBe(401)
      await clients.retireKey(store, clientId, 'second', Date.now() + 3_600_000)
      await until(async () => (await ask(await token())) === BELIEVED)
    })
    it('out of its time is 401, with sixty seconds of grace', async () => {
      expect(await ask(await signed(claims({ exp: now() - 30 })))).toBe(BELIEVED)
      expect(await ask(await signed(claims({ exp: now() - 90 })))).toBe(401)
      expect(await ask(await signed(claims({ nbf: now() + 90 })))).toBe(401)
      expect(await ask(await signed(claims({ iat: now() + 90 })))).toBe(401)
    })
    it('for another audience is 401', async () => {
      expect(await ask(await signed(claims({ aud: 'somebody else' })))).toBe(401)
    })
    it('by another’s key, of another’s name, or of another type is 401', async () => {
      expect(await ask(await signed(claims(), { key: foreign.privateKey }))).toBe(401)
      expect(await ask(await signed(claims(), { header: { kid: 'unknown' } }))).toBe(401)
      expect(await ask(await signed(claims({ sub: randomUUID() })))).toBe(401)
      expect(await ask(await signed(claims({ sub: 'somebody' })))).toBe(401)
      expect(await ask(await signed(claims(), { header: { typ: 'tokenmill-job+jwt' } }))).toBe(401)
      expect(await ask(await signed(claims(), { header: { typ: 'tokenmill-result+jwt' } }))).toBe(401)
    })
    it('without a signature, by a shared secret, or changed is 401', async () => {
      expect(await ask(`Bearer ${new UnsecuredJWT({ exp: now() + 60, ...claims() }).encode()}`)).toBe(401)
      const hs = await new SignJWT({ exp: now() + 60, ...claims() })
        .setProtectedHeader({ alg: 'HS256', kid: own.kid })
        .sign(Buffer.alloc(32, 1))
      expect(await ask(`Bearer ${hs}`)).toBe(401)
      const token = await signed(claims())
      const [head, , signature] = token.split('.')
      const payload = Buffer.from(JSON.stringify(claims({ exp: now() + 300, roles: ['ADMIN'] }))).toString('base64url')
      expect(await ask(`${head}.${payload}.${signature}`)).toBe(401)
    })
    it('in another spelling of the same bytes, with padding or with spaces is 401', async () => {
      const [head = '', payload = '', signature = ''] = (await signed(claims())).slice('Bearer '.length).split('.')
      // 64 bytes leave four bits of the last letter unused, so the next letter decodes to the same bytes.
      const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      const respelt = `${signature.slice(0, -1)}${letters[letters.indexOf(signature.at(-1) ?? '') + 1]}`
      expect(Buffer.from(respelt, 'base64url').equals(Buffer.from(signature, 'base64url'))).toBe(true)
      const forms = [
        `${head}.${payload}.${respelt}`,
        `${head}.${payload}.${signature}==`,
        `${head}=.${payload}.${signature}`,
        `${head}. ${payload}.${signature}`,
        `${head} .${payload}.${signature}`,
        `${head}.${payload}.${signature}.`,
        `${head}.${payload}.${signature.replaceAll('-', '+').replaceAll('_', '/')}+`,
      ]
      for (const form of forms) expect(await ask(`Bearer ${form}`), form).toBe(401)
      expect(await ask(`Bearer  ${head}.${payload}.${signature} `)).toBe(BELIEVED)
    })
    it('that names a claim twice is 401', async () => {
      const head = JSON.stringify({ alg: own.alg, kid: own.kid })
      const twice = `{"sub":"${randomUUID()}",${JSON.stringify(claims({ exp: now() + 300 })).slice(1)}`
      const input = [head, twice].map(part => Buffer.from(part).toString('base64url')).join('.')
      const token = `${input}.${sign(null, Buffer.from(input), own.key).toString('base64url')}`
      expect(await ask(`Bearer ${token}`)).toBe(401)
    })
    it('is not by a key whose key_ops lacks verify', async () => {
      const { clientId } = installation.credentials.signingKey
      const store = installation.vault.store
      const keys = { 'may-verify': ['verify'], 'may-sign': ['sign'] }
      for (const [kid, operations] of Object.entries(keys)) {
        const publicJwk = { ...foreign.publicKey.export({ format: 'jwk' }), key_ops: operations }
        const key = { clientId, kid, alg: 'EdDSA' as const, publicJwk }
        await clients.insertKey(store, key)
        await grantClientKey(store, installation.vault.ring, { ...key, ...NEW_KEY })
      }
      await installation.signRights()
      const by = (kid: string) => signed(claims(), { key: foreign.privateKey, header: { kid, alg: 'EdDSA' } })
      await until(async () => (await ask(await by('may-verify'))) === BELIEVED)
      expect(await ask(await by('may-sign'))).toBe(401)
      for (const kid of Object.keys(keys)) await clients.revokeKey(store, clientId, kid)
      const unnamed = await signed(claims(), { header: { kid: undefined } })
      await until(async () => (await ask(unnamed)) === BELIEVED)
    })
    it('a queue job’s envelope is no token', async () => {
      const client = await installation.connect()
      const { jws } = await import('../../../../producers/envelope.ts').then(async ({ signAsk }) => {
        const made = await signAsk(
          installation.credentials,
          { kind: 'token-lifecycle', request: { id: 't'.repeat(27), action: 'SUSPEND' } },
          { jti: 'x', expiresInMs: 60_000 },
          Date.now(),
        )
        if ('refused' in made) throw new Error('refused')
        return made.data
      })
      expect(await ask(`Bearer ${jws}`)).toBe(401)
      await client.close()
    })
  })

  describe('the challenge of a 401', () => {
    /** The three services that take the same credentials, and the checks of their error bodies. */
    const SERVICES: Record<string, (body: Record<string, unknown>) => unknown> = {
      [NOBODY]: body => expect(Object.keys(body).sort()).toEqual(['code', 'message', 'reversal_status', 'timestamp']),
      '/oidc/report-engine/api/v1/reports': body =>
        expect(body).toMatchObject({ code: '401', type: 'AUTHENTICATION_ERROR' }),
    }
    const challengesFor = async (authorization: string | undefined, path = NOBODY) => {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        const headers = authorization === undefined ? {} : { authorization }
        request(`${caller.url}${path}`, { headers }, resolve).on('error', reject).end()
      })
      let text = ''
      for await (const piece of answer.setEncoding('utf8')) text += piece
      const challenges = answer.rawHeaders.filter((_, index, all) => /^www-authenticate$/i.test(all[index - 1] ?? ''))
      return { status: answer.statusCode, challenges, body: JSON.parse(text) as Record<string, unknown> }
    }
    const descriptionOf = async (authorization: string) => {
      const { status, challenges } = await challengesFor(authorization)
      expect(status).toBe(401)
      const found = /^Bearer realm="tokenmill", error="invalid_token", error_description="([ !#-[\]-~]+)"$/.exec(
        challenges[1] ?? '',
      )
      expect(found, challenges.join()).not.toBeNull()
      return found?.[1] ?? ''
    }

    it.each(Object.entries(SERVICES))('of %s names both schemes, each in a field of its own', async (path, check) => {
      for (const authorization of [undefined, 'Bearer', 'Digest x', basic(userId, 'wrong')]) {
        const { status, challenges, body } = await challengesFor(authorization, path)
        expect(status).toBe(401)
        expect(challenges).toEqual(['Basic realm="tokenmill", charset="UTF-8"', 'Bearer realm="tokenmill"'])
        check(body)
      }
      const { status, challenges, body } = await challengesFor(await signed(claims({ exp: 1 })), path)
      expect({ status, basic: challenges[0] }).toEqual({
        status: 401,
        basic: 'Basic realm="tokenmill", charset="UTF-8"',
      })
      expect(challenges[1]).toBe('Bearer realm="tokenmill", error="invalid_token", error_description="exp has passed"')
      check(body)
    })
    it('names all that is missing', async () => {
      expect(await descriptionOf(await signed(claims({ exp: undefined })))).toMatch(/\bexp and iat\b.* missing/)
      const description = await descriptionOf(
        await signed({ exp: undefined }, { header: { kid: undefined, typ: 'tokenmill-job+jwt' } }),
      )
      for (const word of ['typ', 'sub', 'entity_id', 'exp and iat']) expect(description).toContain(word)
      expect(description).not.toContain('roles')
    })
    it.each<[string, () => Promise<string> | string]>([
      ['sub', () => signed(claims({ sub: 'somebody' }))],
      ['entity_id', () => signed(claims({ entity_id: 7 }))],
      ['roles', () => signed(claims({ roles: 'TOKEN_READ' }))],
      ['exp', () => signed(claims({ exp: now() - 90 }))],
      ['iat', () => signed(claims({ iat: now() + 90 }))],
      ['iat', () => signed(claims({ iat: now() - 4_000, exp: undefined }))],
      ['nbf', () => signed(claims({ nbf: now() + 90 }))],
      ['aud', () => signed(claims({ aud: ['somebody else'] }))],
      ['alg', () => `Bearer ${new UnsecuredJWT({ exp: now() + 60, ...claims() }).encode()}.x`.replace(/\.\.x$/, '.AA')],
      ['kid', () => signed(claims(), { header: { kid: 'x'.repeat(300) } })],
      ['JWS', async () => `${await signed(claims())}==`],
      ['8192', () => `Bearer ${'A'.repeat(9_000)}`],
    ])('names %s where it is what is wrong', async (word, make) => {
      expect(await descriptionOf(await make())).toContain(word)
    })
    it('tells an unknown user, an unknown key and a wrong signature alike', async () => {
      const stranger = { sub: randomUUID() }
      const wrong = { key: foreign.privateKey }
      const named = await Promise.all([
        signed(claims(), wrong),
        signed(claims(), { header: { kid: 'unknown' } }),
        signed(claims(stranger)),
        signed(claims(stranger), { ...wrong, header: { kid: 'unknown' } }),
      ])
      const unnamed = await Promise.all([
        signed(claims(), { ...wrong, header: { kid: undefined } }),
        signed(claims(stranger), { header: { kid: undefined } }),
      ])
      expect(new Set(await Promise.all(named.map(descriptionOf))).size).toBe(1)
      const [description = '', ...others] = new Set(await Promise.all(unnamed.map(descriptionOf)))
      expect(others).toEqual([])
      expect(description).toContain('kid')
      for (const word of [description, await descriptionOf(named[0] ?? '')]) expect(word).not.toMatch(/sign/i)
    })
  })

  describe('a JWT by an issuer that the operator named', () => {
    const iss = 'https://login.example'
    const by = (payload: Record<string, unknown> = {}, kid = 'issuer-1', key: KeyObject = foreign.privateKey) =>
      signed(claims({ iss, ...payload }), { key, header: { alg: 'EdDSA', kid } })
    it('is believed, and its keys are asked for once', async () => {
      expect(await ask(await by())).toBe(BELIEVED)
      expect(await ask(await by({ roles: ['TOKEN_LIFECYCLE'] }))).toBe(403)
      expect(issuer.asked).toBe(1)
    })
    it('speaks only for users that there are', async () => {
      expect(await ask(await by({ sub: randomUUID() }))).toBe(401)
    })
    it('must be by a key of that issuer: the client’s own is none', async () => {
      expect(await ask(await signed(claims({ iss })))).toBe(401)
      expect(await ask(await by({ iss: 'https://login.example/' }))).toBe(401)
    })
    it('an unknown kid asks for the keys at most every thirty seconds', async () => {
      for (let time = 0; time < 5; time += 1) expect(await ask(await by({}, `unknown-${time}`))).toBe(401)
      expect(issuer.asked).toBeLessThanOrEqual(2)
    })
    it('is not by a key of the issuer whose key_ops lacks verify', async () => {
      issuer.keys.push({
        ...foreign.publicKey.export({ format: 'jwk' }),
        kid: 'signs',
        alg: 'EdDSA',
        key_ops: ['sign'],
      })
      expect(await ask(await by({}, 'signs'))).toBe(401)
    })
    it('whose keys lie inside is never asked', async () => {
      expect(await ask(await by({ iss: 'inside' }))).toBe(401)
    })
  })
})
