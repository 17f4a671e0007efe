// A gateway in a separate process: its log, its end, its settings, TLS, and its database role. One engine is enough,
// because the queue plays no part.
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { gatewayKeysPath } from '../../../cli/open/gateway-keys.ts'
import { readConfig } from '../../../src/config.ts'
import { openStore } from '../../../src/store/pool.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { startScript } from '../../support/process.ts'
import { until } from '../../support/until.ts'
import { basicOf, CARD, type Caller, openGatewayFor } from './bundle.ts'

const NOBODY = `${CARD}/t${'0'.repeat(26)}`
const HAS_OPENSSL = ['/usr/bin/openssl', '/usr/local/bin/openssl', '/opt/homebrew/bin/openssl'].some(existsSync)

describe('a gateway process', () => {
  let database: FreshDatabase
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    database = await freshDatabase()
    installation = await openInstallation({
      name: 'postgres',
      prefix: '{gateway-process}',
      redisUrls: undefined,
      databaseUrl: database.url,
    })
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
    await database?.drop()
  })

  /** Starts a gateway as a process; its log is on standard error. */
  const startProcess = (env: Record<string, string | undefined> = {}) =>
    startScript('cli/main.ts', ['gateway'], {
      env: {
        ...(installation.env as Record<string, string>),
        TOKENMILL_HTTP_PORT: '0',
        TOKENMILL_LOG_LEVEL: 'info',
        ...env,
      },
    })
  const portOf = async (child: ReturnType<typeof startProcess>) =>
    Number((await child.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' }))[1])

  it('logs each request by its template, without body, query or credentials', async () => {
    const child = startProcess()
    const url = `http://127.0.0.1:${await portOf(child)}`
    const authorization = await basicOf(installation.clientFile)
    const secret = JSON.parse(await readFile(installation.clientFile, 'utf8')) as { api_key: string }
    await fetch(`${url}${CARD}/t4111111111111111?pan=4111111111111111`, {
      method: 'PATCH',
      headers: {
        authorization,
        'content-type': 'application/json',
        'x-request-id': 'log-1',
        'user-agent': '4111111111111111',
      },
      body: JSON.stringify({ card_holder_name: 'CANARY', cvv: 'v9u8w7', x: 1 }),
    })
    await child.line(/"request_id":"log-1"/, { stream: 'stderr' })
    child.signal('SIGTERM')
    expect(await child.exit).toMatchObject({ code: 0 })
    const log = child.stderr()
    expect(log).toContain('"route":"/oidc/api/v2/card/:id"')
    for (const hidden of ['4111111111111111', 'CANARY', 'v9u8w7', secret.api_key, authorization.slice(6)])
      expect(log).not.toContain(hidden)
  })

  it('at its end takes no more, and lets what is in flight end', async () => {
    const child = startProcess()
    const port = await portOf(child)
    const authorization = await basicOf(installation.clientFile)
    const slow = connect(port, '127.0.0.1')
    let text = ''
    slow.on('data', chunk => {
      text += chunk
    })
    slow.write(
      `PATCH ${NOBODY} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{"x":1`,
    )
    await until(async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok)
    child.signal('SIGTERM')
    await until(() =>
      fetch(`http://127.0.0.1:${port}/healthz`).then(
        () => false,
        () => true,
      ),
    )
    slow.write('}')
    expect(await child.exit).toMatchObject({ code: 0 })
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
    expect(text).toContain('body.x')
  })

  it.each(['SIGTERM', 'the end of its parent'])('as a child of `start` ends soon after %s', async end => {
    const env = { ...installation.env, TOKENMILL_HTTP_PORT: '0' }
    const child = fork(join(import.meta.dirname, '../../../cli/main.ts'), ['gateway'], { env, execArgv: [] })
    const exited = once(child, 'exit')
    await once(child, 'message')
    const begun = performance.now()
    if (end === 'SIGTERM') child.kill('SIGTERM')
    else child.disconnect()
    expect(await exited).toEqual([0, null])
    expect(performance.now() - begun).toBeLessThan(60_000)
  })

  it('says in one line that its port is in use, and exits 1: it may be free at the next try', async () => {
    const child = startProcess({ TOKENMILL_HTTP_PORT: String(caller.gateway.port), TOKENMILL_LOG_LEVEL: 'error' })
    expect(await child.exit).toMatchObject({ code: 1 })
    expect(child.stderr()).toBe(
      `tokenmill: TOKENMILL_HTTP_PORT: something listens on 127.0.0.1:${caller.gateway.port} already; end that process, or set another port\n`,
    )
  })

  it('says in one line what is wrong, and exits 78', async () => {
    const noPem = gatewayKeysPath(installation.dataDir)
    const children = [
      [
        { TOKENMILL_TLS_CERT: noPem, TOKENMILL_TLS_KEY: noPem },
        /^tokenmill: TOKENMILL_TLS_CERT, TOKENMILL_TLS_KEY: must be a/m,
      ],
      [{ TOKENMILL_DATA_DIR: join(installation.dataDir, 'nowhere') }, /^tokenmill: .*gateway\.jwk is not there/m],
    ] as const
    await Promise.all(
      children.map(async ([env, pattern]) => {
        const child = startProcess({ TOKENMILL_LOG_LEVEL: 'error', ...env })
        expect(await child.exit, child.stderr()).toMatchObject({ code: 78 })
        expect(child.stderr()).toMatch(pattern)
      }),
    )
  })

  it.each([
    [{ TOKENMILL_TLS_CERT: 'a' }, 'TOKENMILL_TLS_KEY: must be set where TOKENMILL_TLS_CERT is'],
    [{ TOKENMILL_TLS_KEY: 'a' }, 'TOKENMILL_TLS_CERT: must be set where TOKENMILL_TLS_KEY is'],
    [{ TOKENMILL_JWT_ISSUERS: 'nonsense' }, 'TOKENMILL_JWT_ISSUERS: must be issuer=https://jwks-url, comma-separated'],
    [{ TOKENMILL_GATEWAY_TIMEOUT_SECONDS: '0' }, /^TOKENMILL_GATEWAY_TIMEOUT_SECONDS: /],
    [{ TOKENMILL_GATEWAY_INFLIGHT: '0' }, /^TOKENMILL_GATEWAY_INFLIGHT: /],
    [{ TOKENMILL_RATE_LIMIT: 'many' }, 'TOKENMILL_RATE_LIMIT: must be a number'],
  ])('refuses the settings %j', (env, line) => {
    expect(() => readConfig(env)).toThrow(line)
  })
  it('reads issuers as pairs of name and address', () => {
    const { jwtIssuers } = readConfig({
      TOKENMILL_JWT_ISSUERS: 'https://a.example=https://a.example/jwks?x=1,b=https://b.example/keys',
    })
    expect([...jwtIssuers]).toEqual([
      ['https://a.example', 'https://a.example/jwks?x=1'],
      ['b', 'https://b.example/keys'],
    ])
  })

  it.skipIf(!HAS_OPENSSL)('speaks TLS 1.2 and above, where it is given a certificate', async () => {
    const [cert, key] = [join(installation.dataDir, 'tls.crt'), join(installation.dataDir, 'tls.key')]
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-days',
        '2',
        '-subj',
        '/CN=localhost',
        '-keyout',
        key,
        '-out',
        cert,
      ],
      { stdio: 'ignore' },
    )
    const child = startProcess({ TOKENMILL_TLS_CERT: cert, TOKENMILL_TLS_KEY: key })
    const port = await portOf(child)
    const ca = await readFile(cert)
    const ask = (options: object) =>
      new Promise<string>((resolve, reject) => {
        httpsRequest({ host: '127.0.0.1', port, path: '/healthz', ca, servername: 'localhost', ...options }, answer => {
          answer.resume()
          resolve(String(answer.statusCode))
        })
          .on('error', error => reject(error))
          .end()
      })
    expect(await ask({})).toBe('200')
    await expect(ask({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1' })).rejects.toThrow()
    child.signal('SIGTERM')
    await child.exit
  })

  it('closes a connection whose head or body doesn’t come', async () => {
    const silent = connect(caller.gateway.port, '127.0.0.1')
    const slow = connect(caller.gateway.port, '127.0.0.1')
    silent.write('GET /healthz HTTP/1.1\r\n')
    slow.write(
      `PUT ${CARD} HTTP/1.1\r\nhost: x\r\nauthorization: ${caller.authorization}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`,
    )
    await Promise.all(
      [silent, slow].map(
        socket =>
          new Promise(resolve =>
            socket
              .on('error', () => {})
              .resume()
              .once('close', resolve),
          ),
      ),
    )
    expect((await caller.call('GET', '/healthz')).status).toBe(200)
  })

  describe('acts as a database role that', () => {
    const open = () =>
      openStore(database.url, { log: installation.session.log, connectionsMax: 1, role: 'tokenmill_gateway' })
    it.each([
      'sealed from tokenmill.token',
      'cards from tokenmill.token',
      '* from tokenmill.token',
      'wrapped from tokenmill.data_key',
      'wrapped_private from tokenmill.capture_key',
      'wrapped_private from tokenmill.signing_key',
      'digits from tokenmill.guess',
      'fingerprint from tokenmill.scratch',
    ])('can’t select %s', async what => {
      const store = open()
      await expect(store.query({ text: `select ${what}` })).rejects.toMatchObject({ code: '42501' })
      await store.close()
    })
    it.each([
      'update tokenmill.token set status = status',
      'delete from tokenmill.receipt',
      'insert into tokenmill.client (client_id) values (null)',
      'update tokenmill.client set api_key_hash = null',
      'truncate tokenmill.audit',
    ])('can’t %s', async text => {
      const store = open()
      await expect(store.query({ text })).rejects.toThrow()
      await store.close()
    })
    it('sees API key hashes, which a reader doesn’t', async () => {
      const store = open()
      expect((await store.query({ text: 'select api_key_hash from tokenmill.client limit 1' })).rows).toHaveLength(1)
      await store.close()
      const reader = openStore(database.url, {
        log: installation.session.log,
        connectionsMax: 1,
        role: 'tokenmill_reader',
      })
      await expect(reader.query({ text: 'select api_key_hash from tokenmill.client' })).rejects.toMatchObject({
        code: '42501',
      })
      await reader.close()
    })
  })

  it('finds its keys in a file that only its owner may read', async () => {
    expect((await stat(gatewayKeysPath(installation.dataDir))).mode & 0o777).toBe(0o600)
  })
})
