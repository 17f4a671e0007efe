// What a client over HTTP repeats, what it doesn't, and what its errors say, against a scripted gateway.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ClosedError } from '../../../producers/client/errors.ts'
import { HttpError, NoAnswerError } from '../../../producers/http-client/http-error.ts'
import { type Asked, openRequests, type Requests } from '../../../producers/http-client/requests.ts'
import { systemClock } from '../../../src/clock.ts'
import { REVERSAL_STATUSES } from '../../../src/job/problem.ts'
import { readVectors } from '../../support/vectors.ts'

type Reply =
  | { status: number; body?: unknown; headers?: Record<string, string> }
  | { bytes: string }
  | 'hangs up'
  | 'breaks off'
  | 'is silent'

const answers = readVectors<{
  writes: Answered[]
  broken: Broken[]
  unreachable: { says: string }
  lines: (Broken & { yields: object[] })[]
}>('answers')

let server: Server
let requests: Requests
let script: Reply[]
/** The idempotency key and the body of each request. */
let seen: { key: string | undefined; text: string }[]

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = ''
  for await (const piece of request) text += piece
  const key = request.headers['idempotency-key']
  seen.push({ key: typeof key === 'string' ? key : undefined, text })
  const reply = (script.length > 1 ? script.shift() : script[0]) ?? 'is silent'
  if (reply === 'hangs up') response.destroy()
  else if (reply === 'breaks off') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
    response.write('{"reuse_token":')
    setImmediate(() => response.destroy())
  } else if (reply !== 'is silent' && 'bytes' in reply) {
    response.socket?.end(Buffer.from(reply.bytes, 'latin1'))
  } else if (reply !== 'is silent') {
    response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers })
    response.end(JSON.stringify(reply.body ?? {}))
  }
}

beforeEach(async () => {
  seen = []
  server = createServer((request, response) => void answer(request, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  requests = openRequests({ baseUrl, authorization: () => 'Basic eA==', timeoutMs: 20_000, clock: systemClock, fetch })
})
afterEach(async () => {
  requests.close()
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
})

const write = (timeoutMs?: number) =>
  requests.send({
    method: 'PUT',
    path: '/api/v2/card',
    body: () => '{"a":1}',
    idempotencyKey: 'order-1',
    timeoutMs,
  })
const read = (timeoutMs?: number) => requests.send({ method: 'GET', path: '/api/v2/card/t1', timeoutMs })
const failed = (reversal: string): Reply => ({
  status: 500,
  body: { code: 500, message: 'Unexpected error.', timestamp: 1, reversal_status: reversal },
})
const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error as HttpError,
  )

const DONE: Reply = { status: 200, body: { reuse_token: 't1' } }

describe.each<Answered>(answers.writes)('a write that is answered $name', ({ answer, repeats, says }) => {
  it('is repeated, or not, as in every other client', async () => {
    script = [answer, DONE]
    const error = await errorOf(write())
    expect([error === undefined, seen.length]).toEqual(repeats ? [true, 2] : [false, 1])
  })

  it('has an error that says what to do in the words of every other client', async () => {
    // Later than the client waits, so that nothing is repeated.
    script = [{ ...answer, headers: { ...answer.headers, 'retry-after': '3600' } }]
    expect((await errorOf(write()))?.message).toBe(says)
  })
})

it('is answered in the vectors with each reversal status', () => {
  const told = answers.writes.flatMap(({ answer: { status, body } }) =>
    status === 500 ? ((body as { reversal_status?: string }).reversal_status ?? []) : [],
  )
  expect(new Set(told)).toEqual(new Set(REVERSAL_STATUSES))
})

interface Answered {
  name: string
  answer: Exclude<Reply, string | { bytes: string }>
  repeats: boolean
  says: string
}

interface Broken {
  name: string
  /** Of Latin-1. */
  bytes: string
  repeats: boolean
  says: string
}

it.each(answers.broken)('has the error of every other client if $name is the answer', async broken => {
  script = [{ bytes: broken.bytes }]
  const asked: Asked = { method: 'PUT', path: '/api/v2/card', idempotencyKey: 'order-1', timeoutMs: 400 }
  expect((await errorOf(requests.json(asked)))?.message).toBe(broken.says)
  expect(seen.length > 1).toBe(broken.repeats)
})

it.each(answers.lines)('gives the lines until $name, then the error of every other client', async broken => {
  script = [{ bytes: broken.bytes }]
  const lines: unknown[] = []
  const read = async () => {
    for await (const line of requests.lines({ method: 'GET', path: '/api/v2/batches/b/results' })) lines.push(line)
  }
  const error = await errorOf(read())
  expect(error).toBeInstanceOf(NoAnswerError)
  expect([lines, error?.message]).toEqual([broken.yields, broken.says])
})

describe('where no gateway listens', () => {
  const openTo = (baseUrl: string, clock = systemClock) =>
    openRequests({ baseUrl: `${baseUrl}/oidc`, authorization: () => 'Basic eA==', timeoutMs: 600_000, clock, fetch })
  const put: Asked = { method: 'PUT', path: '/api/v2/card', idempotencyKey: 'order-1' }
  const originOf = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  async function endServer(): Promise<void> {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }

  it('a request says that nothing was sent', async () => {
    const origin = originOf()
    await endServer()
    const error = await errorOf(openTo(origin).send({ ...put, timeoutMs: 400 }))
    expect(error?.message).toBe(answers.unreachable.says.replace('ORIGIN', origin))
  })

  it('a client that was never answered gives up early, and one that was goes on', async () => {
    let now = 0
    const clock = () => {
      now += 3_000
      return now
    }
    const [known, unknown] = [openTo(originOf(), clock), openTo(originOf(), clock)]
    script = [DONE]
    await known.send(put)
    await endServer()
    expect((await errorOf(unknown.send(put)))?.message).toContain('within 10 s')
    expect((await errorOf(known.send({ ...put, timeoutMs: 20_000 })))?.message).toContain('within 20 s')
  })

  it('a certificate that nobody vouches for is named', async () => {
    const failing: typeof fetch = async () => {
      throw new TypeError('fetch failed', {
        cause: Object.assign(new Error(), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
      })
    }
    const requests = openRequests({
      baseUrl: 'https://vault.example',
      authorization: () => 'Basic eA==',
      timeoutMs: 300,
      clock: systemClock,
      fetch: failing,
    })
    const said = (await errorOf(requests.send(put)))?.message
    expect(said).toContain('at https://vault.example (TLS failed (DEPTH_ZERO_SELF_SIGNED_CERT)) within')
  })
})

it.each<[string, Reply]>([
  ['a connection that breaks', 'hangs up'],
  ['a proxy without a gateway', { status: 502 }],
  ['a gateway that is busy', { status: 429, headers: { 'retry-after': '1' } }],
  ['a write that left nothing', failed('NONE')],
  ['a write that is being undone', failed('REQUIRED')],
])('repeats a write, with the same key and bytes, after %s', async (_, first) => {
  script = [first, first, DONE]
  expect(await (await write()).json()).toEqual({ reuse_token: 't1' })
  expect(seen).toEqual(Array.from({ length: 3 }, () => ({ key: 'order-1', text: '{"a":1}' })))
})

it.each([400, 401, 403, 404, 409, 503])('doesn’t repeat a write that was answered %i by tokenmill', async status => {
  script = [{ status, body: { message: 'No.', details: { 'body.x': { message: 'No.', code: 'field_type' } } } }]
  const error = await errorOf(write())
  expect(error).toBeInstanceOf(HttpError)
  expect(error).toMatchObject({ status, details: { 'body.x': { code: 'field_type' } }, idempotencyKey: 'order-1' })
  expect(seen).toHaveLength(1)
})

it('doesn’t repeat a write that was undone, and says that it needs another key', async () => {
  script = [failed('COMPLETED')]
  const error = await errorOf(write())
  expect(error).toMatchObject({ status: 500, reversalStatus: 'COMPLETED' })
  expect(error?.message).toBe(
    'PUT /api/v2/card: 500 Unexpected error. What it did was undone: to do it, ask anew with another idempotency key.',
  )
  expect(seen).toHaveLength(1)
})

it.each([
  ['NONE', 'Nothing was left behind: repeat it with the idempotency key order-1.'],
  ['REQUIRED', 'What it did is being undone: repeat it later with the idempotency key order-1 to learn the end.'],
])('says after the last repeat of a write with %s what to do', async (reversal, next) => {
  script = [failed(reversal)]
  const error = await errorOf(write(400))
  expect(error).toMatchObject({ status: 500, reversalStatus: reversal, idempotencyKey: 'order-1' })
  expect(error?.message).toContain(next)
})

it('repeats a read that failed, three times at most', async () => {
  script = [{ status: 500, body: { message: 'Unexpected error.' }, headers: { 'x-request-id': 'r-1' } }]
  const error = await errorOf(read())
  expect(error).toMatchObject({ status: 500, requestId: 'r-1' })
  expect(error?.message).toContain('tell the operator the request id r-1')
  expect(seen).toHaveLength(3)
})

it('says of a write without an answer that it may have had an effect', async () => {
  script = ['is silent']
  const error = await errorOf(write(300))
  expect(error).toBeInstanceOf(NoAnswerError)
  expect(error?.message).toContain('repeat the same request with the idempotency key order-1')
})

it('says which credentials are wrong, in the gateway’s words', async () => {
  script = [
    {
      status: 401,
      body: { message: 'Valid credentials are required; check the Authorization header.' },
      headers: { 'www-authenticate': 'Bearer error="invalid_token", error_description="The JWT has expired."' },
    },
  ]
  expect((await errorOf(read()))?.message).toContain('401 The JWT has expired.')
})

it('follows no redirect: the credentials are for this gateway', async () => {
  script = [{ status: 302, headers: { location: 'http://127.0.0.1:1/' } }]
  const error = await errorOf(read())
  expect(error).toMatchObject({ status: 302 })
  expect(error?.message).toContain('A gateway redirects nobody')
  expect(seen).toHaveLength(1)
})

it('counts an answer that breaks off as none, and asks again', async () => {
  script = ['breaks off', { status: 200, body: { reuse_token: 't1' } }]
  expect(await (await read()).json()).toEqual({ reuse_token: 't1' })
  expect(seen).toHaveLength(2)
})

it('ends its calls when it is closed', async () => {
  script = ['is silent']
  const error = errorOf(write())
  requests.close()
  expect(await error).toBeInstanceOf(ClosedError)
  expect(await errorOf(read())).toBeInstanceOf(ClosedError)
})
