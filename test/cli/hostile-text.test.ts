// Text that others wrote, through whole commands: names in the store, names and headers of files, and what a server answers.
// A batch's id has its own rule where it comes in, so the owner of the database writes it here.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { describeError } from '../../src/logger.ts'
import { openOutbound } from '../../src/outbound.ts'
import { openWebhooks } from '../../workers/webhook/post.ts'
import { type Bench, cli, openBench, type Said } from './command-bench.ts'

/** A new title for the window, an erased screen by the 8-bit CSI, an override of the direction, and a bell. */
const STEERING = '\u001b]0;owned\u0007\u009b2J\u202egnp'
/** The same with a line that seems to be the product's. */
const HOSTILE = `b1${STEERING}\ntokenmill: all is well\u2028`
const UNSAFE = /(?!\n)[\p{C}\p{Zl}\p{Zp}]/u
const OWN_LINE = /^tokenmill: all is well/m

function expectClean({ stdout, stderr }: Said): void {
  expect(stdout).not.toMatch(UNSAFE)
  expect(stderr).not.toMatch(UNSAFE)
  expect(stdout + stderr).not.toMatch(OWN_LINE)
}

/** A server that answers everything with these bytes; a connection ends after them. */
async function answering(bytes: (heard: Buffer) => Buffer | string): Promise<{ port: number; close: () => void }> {
  const open = new Set<Socket>()
  const server = createServer(socket => {
    open.add(socket)
    socket.on('error', () => {})
    socket.once('data', heard => socket.end(bytes(heard)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}

/** An ErrorResponse of PostgreSQL's protocol, version 3. */
function errorResponse(code: string, message: string): Buffer {
  const fields = [`SFATAL`, `VFATAL`, `C${code}`, `M${message}`, `D${message}`, `H${message}`]
  const body = Buffer.from(`${fields.join('\0')}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

describe('a command shows no raw text', () => {
  let bench: Bench
  let folder: string
  beforeAll(async () => {
    bench = await openBench()
    folder = await mkdtemp(join(tmpdir(), 'tokenmill-hostile-'))
    await bench.rows(
      `insert into tokenmill.client (client_id, name, user_id, entities, roles, alg, system, names)
       values ('c0000000000000000000000000', 'shop', gen_random_uuid(), '{}', '{}', null, false, 'checked')`,
    )
  })
  afterAll(async () => {
    await bench?.close()
    if (folder) await rm(folder, { recursive: true })
  })

  it.each([
    [['batch', 'list']],
    [['batch', 'show', HOSTILE]],
    [['batch', 'list', '--json']],
    [['doctor']],
    [['status']],
  ])('of a batch’s id: %s', async words => {
    await bench.rows(
      `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at)
         select client_id, $1, 'token-create', 1000, '{}', now() - interval '1 day'
         from tokenmill.client
         where name = 'shop'
         on conflict do nothing`,
      { values: [HOSTILE] },
    )
    const said = await bench.cli(words)
    if (words[0] === 'batch') expect(said.stdout).toContain(words.includes('--json') ? 'b1\\u001b' : 'b1\\u{1b}')
    expectClean(said)
  })

  it('of a column’s name in a file, and of the file’s name', async () => {
    const path = join(folder, `cards${STEERING}\ntokenmill: all is well.csv`)
    await writeFile(path, `card_id,number,${STEERING}\nc1,4111111111111111,12/30\n`)
    for (const words of [
      ['inspect', path],
      ['migrate', path, '--dry-run'],
      ['ingest', path],
      ['submit', path],
      ['profile', 'check', path],
      ['inspect', `${path}.gone`],
    ])
      expectClean(await bench.cli(words))
  })

  it.each(['28000', '53300', '57P03', 'XX000'])('of an error of PostgreSQL: %s', async code => {
    const server = await answering(() => errorResponse(code, HOSTILE))
    const env = { DATABASE_URL: `postgres://u:p@127.0.0.1:${server.port}/d` }
    try {
      for (const words of [['status'], ['client', 'list'], ['doctor']]) {
        const said = await cli(words, { env: { ...bench.env, ...env } })
        expect(said.status).not.toBe(0)
        expectClean(said)
      }
    } finally {
      server.close()
    }
  })

  it.each(['ERR', 'NOAUTH', 'MISCONF', 'WRONGPASS'])('of an error of Redis: %s', async code => {
    const server = await answering(() => `-${code} ${STEERING}\r\n`.repeat(5))
    const env = { REDIS_URL: `redis://127.0.0.1:${server.port}` }
    try {
      for (const words of [['status'], ['failed', 'list']]) {
        const said = await bench.cli(words, { env })
        expect(said.status).not.toBe(0)
        expectClean(said)
      }
    } finally {
      server.close()
    }
  })
})

it.each([
  ['a status line', `HTTP/1.1 503 ${HOSTILE}\r\ncontent-length: 0\r\n\r\n`],
  ['a header', `HTTP/1.1 503 no\r\nretry-after: ${STEERING}\r\ncontent-length: 0\r\n\r\n`],
  ['what is no HTTP', `${HOSTILE}\r\n\r\n`],
])('a log shows no raw text of a webhook’s receiver, or of a provider: %s', async (_, bytes) => {
  const server = await answering(() => bytes)
  const lines: string[] = []
  const log = openLog('debug', {}, { write: line => lines.push(line) })
  const url = `http://127.0.0.1:${server.port}/`
  const webhooks = openWebhooks(['127.0.0.1'], { timeoutMs: 10_000 })
  const outbound = openOutbound({ privateHosts: ['127.0.0.1'] })
  try {
    const end = await webhooks.post({ url }, { id: 'x', timestamp: 1, signature: 'v1,x', body: '{}' })
    log.warn({ end }, 'a webhook ended')
    const request = { method: 'GET', headers: {}, timeoutMs: 10_000, bytesMax: 1_000 } as const
    const answer = await outbound.request(url, request).catch(error => ({ error: describeError(error) }))
    log.warn({ answer }, 'a provider answered')
    expect(lines).toHaveLength(2)
    expect(lines.join('')).not.toMatch(UNSAFE)
  } finally {
    await webhooks.close()
    await outbound.close()
    server.close()
  }
})
