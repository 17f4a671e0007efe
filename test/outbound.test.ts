// Outgoing requests to real local servers: a forbidden request never connects, and an error says whether the server may
// have received the request.
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import {
  type AddressInfo,
  createServer as createTcpServer,
  type LookupFunction,
  type Server,
  type Socket,
} from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import {
  type Outbound,
  OutboundError,
  type OutboundOptions,
  type OutboundRequest,
  openOutbound,
} from '../src/outbound.ts'
import { isPrivateAddress } from '../src/private-address.ts'
import { makeCertificate } from '../src/simulate/scheme/certificate.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function open(options: Partial<OutboundOptions> = {}): Outbound {
  const outbound = openOutbound({ privateHosts: ['127.0.0.1'], connections: 4, ...options })
  closers.push(() => outbound.close())
  return outbound
}

interface Listening {
  port: number
  connections(): number
}

async function listen(server: Server): Promise<Listening> {
  let connections = 0
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise(resolve => server.close(resolve))
  })
  return { port: (server.address() as AddressInfo).port, connections: () => connections }
}

const serve = (listener: RequestListener) => listen(createServer(listener))
const GET: OutboundRequest = { method: 'GET', headers: {}, timeoutMs: 5_000, bytesMax: 1_000 }

async function failure(answer: Promise<unknown>): Promise<OutboundError> {
  const error = await answer.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(OutboundError)
  return error as OutboundError
}

describe('an address', () => {
  it.each([
    ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '100.100.100.200', '127.0.0.1', '127.255.255.254'],
    ...['169.254.169.254', '169.254.0.1', '172.16.0.1', '172.31.255.255', '192.0.0.192', '192.0.2.1', '192.168.1.1'],
    ...['192.88.99.1', '198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.1', '168.63.129.16'],
    ...['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
    ...['::', '::1', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1', '::127.0.0.1', '64:ff9b::7f00:1'],
    ...['64:ff9b:1::1', '100::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fe80::1%eth0', 'fec0::1', 'ff02::1'],
    ...['2001::1', '2001:db8::1', '2002:7f00:1::', '3fff::1', '5f00::1', '2606:4700::1%lo'],
    ...['', 'localhost', '127.1', '0x7f000001', '1.2.3.4.5'],
  ])('%s is inside', address => {
    expect(isPrivateAddress(address)).toBe(true)
  })

  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '100.63.255.255',
    '172.32.0.1',
    '192.167.1.1',
    '2606:4700:4700::1111',
    '2a00:1450::1',
  ])('%s is outside', address => {
    expect(isPrivateAddress(address)).toBe(false)
  })
})

describe('a forbidden request', () => {
  it.each([
    ['plain http', 'http://example.com/', 'SCHEME'],
    ['another scheme', 'file:///etc/passwd', 'SCHEME'],
    ['no URL', 'example', 'URL'],
    ['a password in the URL', 'https://user:hunter2@example.com/', 'USERINFO'],
    ['a private address', 'https://10.0.0.1/', 'ADDRESS'],
    ['loopback in decimal', 'https://2130706433/', 'ADDRESS'],
    ['loopback, shortened', 'https://127.1/', 'ADDRESS'],
    ['loopback of IPv6', 'https://[::1]/', 'ADDRESS'],
    ['a mapped address', 'https://[::ffff:169.254.169.254]/', 'ADDRESS'],
  ])('%s: nothing is sent', async (_, url, code) => {
    const error = await failure(open({ privateHosts: [] }).request(url, GET))
    expect(error).toMatchObject({ kind: 'forbidden', sent: false, code })
    expect(String(error.stack)).not.toContain('hunter2')
  })

  it('a name that leads inside, or inside beside outside, never connects', async () => {
    const { port, connections } = await serve((_, response) => response.end())
    for (const addresses of [['127.0.0.1'], ['1.1.1.1', '127.0.0.1'], ['::ffff:127.0.0.1'], []]) {
      const lookup: LookupFunction = (_, __, callback) =>
        callback(
          null,
          addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
        )
      const error = await failure(open({ privateHosts: [], lookup }).request(`https://rebind.example:${port}/`, GET))
      expect(error).toMatchObject({ kind: 'forbidden', sent: false, code: 'ADDRESS' })
    }
    expect(connections()).toBe(0)
  })

  it('a name is looked up once per connection: the address checked is the address used', async () => {
    const { port, connections } = await serve((_, response) => response.end())
    let asked = 0
    // The name is private at the first look-up and public at the second: with a second look-up the request would
    // connect.
    const lookup: LookupFunction = (_, __, callback) =>
      callback(null, [{ address: asked++ === 0 ? '127.0.0.1' : '1.1.1.1', family: 4 }])
    await failure(open({ privateHosts: [], lookup }).request(`https://rebind.example:${port}/`, GET))
    expect({ asked, connections: connections() }).toEqual({ asked: 1, connections: 0 })
  })

  it('an exempt host is exempt on its port only', async () => {
    const { port } = await serve((_, response) => response.end('in'))
    const outbound = open({ privateHosts: [`127.0.0.1:${port}`] })
    expect((await outbound.request(`http://127.0.0.1:${port}/`, GET)).body.toString()).toBe('in')
    expect(await failure(outbound.request(`http://127.0.0.1:${port + 1}/`, GET))).toMatchObject({ kind: 'forbidden' })
    expect(await failure(outbound.request(`http://localhost:${port}/`, GET))).toMatchObject({ kind: 'forbidden' })
  })
})

describe('an answer', () => {
  it('a redirect is not followed', async () => {
    const asked: (string | undefined)[] = []
    const { port } = await serve((request, response) => {
      asked.push(request.url)
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    const error = await failure(open().request(`http://127.0.0.1:${port}/first`, GET))
    expect(error).toMatchObject({ kind: 'protocol', sent: true, code: 'REDIRECT' })
    expect(asked).toEqual(['/first'])
  })

  it.each(['announced', 'unannounced'])('longer than permitted, %s, is cut off', async how => {
    const { port } = await serve((_, response) => {
      if (how === 'announced') response.writeHead(200, { 'content-length': 1_001 })
      response.write('x'.repeat(600))
      response.end('x'.repeat(401))
    })
    expect(await failure(open().request(`http://127.0.0.1:${port}/`, GET))).toMatchObject({
      kind: 'too_large',
      sent: true,
    })
  })

  it.each([
    ['of any length', 200, {}],
    ['that goes on and on', 503, {}],
    ['that says more than it sends', 200, { 'content-length': '9999' }],
    ['to elsewhere', 307, { location: 'http://127.0.0.1:1/' }],
    ['that is packed', 204, { 'content-encoding': 'gzip' }],
  ] as const)('%s is its status, where only the status counts', async (how, status, headers) => {
    let sent = 0
    const { port } = await serve((_, response) => {
      response.writeHead(status, headers)
      if (how === 'to elsewhere' || status === 204) {
        response.end()
        return
      }
      const timer = setInterval(() => {
        sent += 500
        response.write('x'.repeat(500))
      }, 5)
      response.on('close', () => clearInterval(timer))
    })
    const request = { ...GET, timeoutMs: 2_000, statusOnly: true }
    const answer = await open().request(`http://127.0.0.1:${port}/`, request)
    expect(answer.status).toBe(status)
    expect(answer.body.length).toBeLessThanOrEqual(GET.bytesMax)
    expect(sent).toBeLessThan(100 * GET.bytesMax)
  })

  it('whose status has come is not late, where only the status counts; without a status it is', async () => {
    const { port } = await serve((request, response) => {
      if (request.url === '/') response.writeHead(200).flushHeaders()
    })
    const request = { ...GET, timeoutMs: 1_000, statusOnly: true }
    expect(await open().request(`http://127.0.0.1:${port}/`, request)).toMatchObject({ status: 200 })
    const never = open().request(`http://127.0.0.1:${port}/never`, { ...request, timeoutMs: 150 })
    expect(await failure(never)).toMatchObject({ kind: 'timeout' })
  })

  it('that trickles ends at the total deadline', async () => {
    const { port } = await serve((_, response) => {
      const timer = setInterval(() => response.write('.'), 10)
      response.on('close', () => clearInterval(timer))
    })
    const error = await failure(open().request(`http://127.0.0.1:${port}/`, { ...GET, timeoutMs: 1_000 }))
    expect(error).toMatchObject({ kind: 'timeout', sent: true })
  })

  it('that never begins ends at the deadline, and what waited behind it was not sent', async () => {
    let asked = 0
    const { port } = await serve(() => {
      asked += 1
    })
    const outbound = open({ connections: 1 })
    const url = `http://127.0.0.1:${port}/`
    const [first, second] = await Promise.all([
      failure(outbound.request(url, { ...GET, timeoutMs: 2_000 })),
      failure(outbound.request(url, { ...GET, timeoutMs: 1_000 })),
    ])
    expect([first.sent, second.sent]).toEqual([true, false])
    expect([first.kind, second.kind, asked]).toEqual(['timeout', 'timeout', 1])
  })

  it('that is compressed, or no HTTP, is a breach of protocol', async () => {
    const zipped = await serve((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'))
    const odd = await listen(createTcpServer(socket => socket.once('data', () => socket.end('SSH-2.0-none\r\n'))))
    for (const { port } of [zipped, odd])
      expect(await failure(open().request(`http://127.0.0.1:${port}/`, GET))).toMatchObject({
        kind: 'protocol',
        sent: true,
      })
  })

  it('a refused connection was not sent, a reset one may have been', async () => {
    const reset = await listen(createTcpServer(socket => socket.once('data', () => socket.resetAndDestroy())))
    const error = await failure(open().request(`http://127.0.0.1:${reset.port}/`, GET))
    expect(error).toMatchObject({ kind: 'unreachable', sent: true })
    const closed = await listen(createTcpServer())
    await closers.pop()?.()
    const refused = await failure(open().request(`http://127.0.0.1:${closed.port}/`, GET))
    expect(refused).toMatchObject({ kind: 'unreachable', sent: false, code: 'ECONNREFUSED' })
  })

  it('comes with status, headers and body, over kept connections', async () => {
    const { port, connections } = await serve((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', chunk => chunks.push(chunk))
      request.on('end', () => {
        response.writeHead(409, { 'X-Twice': ['a', 'b'] })
        response.end(`${request.method} ${request.url} ${request.headers['authorization']} ${Buffer.concat(chunks)}`)
      })
    })
    const outbound = open()
    const request = { ...GET, method: 'POST', headers: { authorization: 'Bearer x' }, body: 'hello' } as const
    for (let turn = 0; turn < 10; turn += 1) {
      const answer = await outbound.request(`http://127.0.0.1:${port}/a?b=c`, request)
      expect(answer).toMatchObject({ status: 409, headers: { 'x-twice': 'a, b' } })
      expect(answer.body.toString()).toBe('POST /a?b=c Bearer x hello')
    }
    // A connection becomes free a moment after its answer.
    expect(connections()).toBeLessThanOrEqual(2)
  })

  it('a proxy of the environment is not asked', async () => {
    const proxy = await serve((_, response) => response.end('proxy'))
    const { port } = await serve((_, response) => response.end('direct'))
    const before = process.env['HTTP_PROXY']
    process.env['HTTP_PROXY'] = `http://127.0.0.1:${proxy.port}`
    closers.push(() => {
      if (before === undefined) delete process.env['HTTP_PROXY']
      else process.env['HTTP_PROXY'] = before
    })
    expect((await open().request(`http://127.0.0.1:${port}/`, GET)).body.toString()).toBe('direct')
  })
})

describe('https', () => {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const certificate = makeCertificate({ ...pair, commonName: 'scheme.example', now: Date.now(), days: 2 })
  const key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' })

  it('a certificate that nobody vouches for ends it before anything is sent', async () => {
    let asked = 0
    const { port } = await listen(
      createTlsServer({ key, cert: certificate }, (_, response) => {
        asked += 1
        response.end('tls')
      }),
    )
    const url = `https://127.0.0.1:${port}/`
    expect(await failure(open().request(url, GET))).toMatchObject({ kind: 'unreachable', sent: false })
    expect(asked).toBe(0)
    expect((await open({ ca: certificate }).request(url, GET)).body.toString()).toBe('tls')
  })
})
