// Which TLS each connecting library accepts, as the server sees it.
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import tls, { createSecureContext, TLSSocket } from 'node:tls'
import { Redis } from 'ioredis'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSession } from '../cli/open/open.ts'
import { processTerminal } from '../cli/terminal.ts'
import { openOutbound } from '../src/outbound.ts'
import { credentialsOf } from '../src/queue/redis-url.ts'
import { makeCertificate } from '../src/simulate/scheme/certificate.ts'
import { startCommand } from './support/process.ts'

/** Connects to the port, and resolves whether or not that succeeds. */
type Connect = (port: number) => Promise<unknown>

const CLIENTS: Record<string, Connect> = {
  'an outgoing request': async port => {
    const outbound = openOutbound({ privateHosts: [`127.0.0.1:${port}`], connections: 1, ca: cert })
    const asked = { method: 'GET', headers: {}, timeoutMs: 5_000, bytesMax: 10 } as const
    await outbound.request(`https://127.0.0.1:${port}`, asked).finally(() => outbound.close())
  },
  Redis: async port => {
    const { tls: settings } = credentialsOf(`rediss://127.0.0.1:${port}`)
    const redis = new Redis({ port, tls: { ...settings, ca: cert }, lazyConnect: true, retryStrategy: null })
    redis.on('error', () => {})
    await redis.connect().finally(() => redis.disconnect())
  },
  PostgreSQL: async port => {
    const client = new Client({ connectionString: `postgres://u:p@127.0.0.1:${port}/d?sslmode=no-verify` })
    client.on('error', () => {})
    await client.connect().finally(() => client.end())
  },
  'a library that says nothing of TLS': port =>
    new Promise((resolve, reject) => {
      const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
      socket.once('error', reject).once('close', resolve)
    }),
}

const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
const key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' })
const cert = makeCertificate({ ...pair, commonName: 'localhost', now: Date.now(), days: 1 })

/** The cipher that a server of these settings and `connect` have in common; undefined for none. */
async function negotiate(connect: Connect, settings: tls.SecureContextOptions, isPostgres: boolean) {
  const secureContext = createSecureContext({ key, cert, ...settings })
  const found = Promise.withResolvers<string | undefined>()
  const begin = (socket: Socket) => {
    const secured = new TLSSocket(socket, { isServer: true, secureContext })
    secured.once('secure', () => {
      found.resolve(secured.getCipher().name)
      secured.destroy()
    })
    secured.once('error', () => found.resolve(undefined))
  }
  const server = createServer(socket => {
    socket.on('error', () => {})
    // PostgreSQL's request for TLS, granted.
    if (isPostgres) socket.once('data', () => socket.write('S', () => begin(socket)))
    else begin(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  await connect((server.address() as { port: number }).port).catch(() => {})
  const cipher = await found.promise
  await new Promise(resolve => server.close(resolve))
  return cipher
}

describe.each(Object.entries(CLIENTS))('%s', (name, connect) => {
  const before = { ciphers: tls.DEFAULT_CIPHERS, version: tls.DEFAULT_MIN_VERSION }
  // Every process of the product restricts TLS in this way at its start.
  beforeAll(() => void openSession(processTerminal()))
  afterAll(() => {
    tls.DEFAULT_CIPHERS = before.ciphers
    tls.DEFAULT_MIN_VERSION = before.version
  })
  const speak = (settings: tls.SecureContextOptions) => negotiate(connect, settings, name === 'PostgreSQL')

  it.each([
    ['TLS 1.1', { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }],
    ['no forward secrecy', { maxVersion: 'TLSv1.2', ciphers: 'AES256-GCM-SHA384:AES128-GCM-SHA256' }],
    ['no authenticated encryption', { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES256-SHA384:ECDHE-RSA-AES128-SHA' }],
  ] as const)('has nothing in common with a server of %s', async (_what, settings) => {
    expect(await speak(settings)).toBeUndefined()
  })

  it('speaks 1.3, and 1.2 with both', async () => {
    expect(await speak({ minVersion: 'TLSv1.3' })).toMatch(/^TLS_/)
    expect(await speak({ maxVersion: 'TLSv1.2' })).toMatch(/^ECDHE-RSA-.*(GCM|POLY1305)/)
  })
})

it('of which the server has none is a setting that is wrong: a command says so in one line', async () => {
  let line = ''
  const run = async (port: number) => {
    const child = startCommand(['client', 'list'], {
      env: { DATABASE_URL: `postgres://u:p@127.0.0.1:${port}/d?sslmode=no-verify`, REDIS_URL: undefined },
    })
    const { code } = await child.exit
    line = `${code} ${child.stderr()}`
  }
  expect(await negotiate(run, { maxVersion: 'TLSv1.2', ciphers: 'AES256-GCM-SHA384' }, true)).toBeUndefined()
  expect(line).toMatch(/^78 tokenmill: DATABASE_URL: the server offers no TLS that tokenmill accepts; [^\n]*\n$/)
})
