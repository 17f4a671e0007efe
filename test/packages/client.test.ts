// tokenmill-client in a project of a stranger's: what it holds, its types, and the programs of docs/upstream.md as they stand
// there, against a real installation, on each Node that the package is for.
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { surfaceIn } from '../../bin/build/client.ts'
import { type Caller, openGatewayFor } from '../producers/gateway/bundle.ts'
import { type Engine, redisUrl } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { type InstalledClient, installClient, programOf } from './installed-client.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** As bytes of files, not of blocks: zod 6.3, BullMQ with its dependencies 12.5, lru-cache 3.4. */
const INSTALLED_BYTES_MAX = 26_000_000

const CONSUMER = `
import { type BatchCheckpoint, type Client, connect, connectHttp, type HttpClient, HttpError } from 'tokenmill-client'

export async function overQueues(redisUrl: string): Promise<unknown> {
  const client: Client = await connect({ redisUrl, clientFile: 'client.json', replyTo: 'shop1', log: console })
  const card = await client.encryptCard({ cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2031 })
  const result = await client.call('token-create', { token_scope: 's', ...card }, { jti: 'o' })
  let checkpoint: BatchCheckpoint | undefined
  const options = { kind: 'token-create', batchId: 'x', onCheckpoint: (next: BatchCheckpoint) => void (checkpoint = next) } as const
  for await (const { record, result } of client.batch(options, [{ card: { cardNumber: '4111111111111111' } }]))
    console.log(record.card?.cardNumber, result.outcome satisfies string)
  const { kind, answers, envelope } = await client.submit('reference', { provider: 'p', card_id: 'c', action: 'RELEASE', token_scope: 's' })
  return [result.record, checkpoint, kind, answers, envelope]
}

export async function overHttp(): Promise<ReadableStream<Uint8Array> | undefined> {
  const client: HttpClient = await connectHttp({ clientFile: 'client.json' })
  try {
    const token = await client.createToken({ card: { cardNumber: '4111111111111111' } })
    const id: string | undefined = token.reuse_token
    return client.reportFile(String(id))
  } catch (error) {
    if (error instanceof HttpError) console.error(error.status, error.reversalStatus satisfies string | undefined)
    return undefined
  }
}
`

/** What no line may compile: another action, a kind that only tokenmill sends, another type of report. */
const WRONG = [
  "(await connect({ redisUrl: '' })).call('token-lifecycle', { id: 'x', action: 'FLY' })",
  "(await connect({ redisUrl: '' })).call('reversal', {})",
  "(await connectHttp({})).orderReport({ reportType: 'NONE', reportEntityUid: '', reportParameter: {}, mimeType: 'text/csv' })",
]

function bytesIn(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(
      entry => entry.isFile() && !entry.parentPath.includes('node-linux-') && !entry.parentPath.includes('@types'),
    )
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

let client: InstalledClient
beforeAll(async () => {
  client = await installClient()
})
afterAll(() => client?.remove())

describe('the package', () => {
  const own = () => join(client.project, 'node_modules/tokenmill-client')

  it('shows what the committed list says: whatever changes there changes for those who use it', () => {
    // `npm run build:client` writes the list.
    expect(surfaceIn(own())).toBe(read('clients/node/surface.txt'))
  })

  it('has the versions of the workers, and no more than it needs', () => {
    const { dependencies } = JSON.parse(read('clients/node/package.json'))
    const workers = JSON.parse(read('package.json')).dependencies
    expect(dependencies).toEqual(Object.fromEntries(Object.keys(dependencies).map(name => [name, workers[name]])))
    expect(bytesIn(join(client.project, 'node_modules'))).toBeLessThan(INSTALLED_BYTES_MAX)
  })

  it.each([
    ['nodenext', { module: 'nodenext', moduleResolution: 'nodenext' }],
    ['bundler', { module: 'preserve', moduleResolution: 'bundler' }],
  ])('has types that a strict program can use, resolved as %s does', async (name, modules) => {
    expect(await compile(`right.${name}`, CONSUMER, modules)).toBe('')
    const wrong = WRONG.map(line => `;${line}`).join('\n')
    const said = await compile(
      `wrong.${name}`,
      `${wrong}\nimport { connect, connectHttp } from 'tokenmill-client'\n`,
      modules,
    )
    expect([...said.matchAll(/\.ts\((\d+),/g)].map(([, line]) => Number(line))).toEqual(
      WRONG.map((_, index) => index + 1),
    )
  })

  async function compile(name: string, program: string, modules: object): Promise<string> {
    const strict = {
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      exactOptionalPropertyTypes: true,
      types: ['node'],
    }
    const compilerOptions = { ...strict, target: 'ES2023', noUncheckedIndexedAccess: true, ...modules }
    writeFileSync(join(client.project, `${name}.ts`), program)
    const config = join(client.project, `tsconfig.${name}.json`)
    writeFileSync(config, JSON.stringify({ compilerOptions, files: [`${name}.ts`] }))
    const words = ['-p', config, '--pretty', 'false']
    const tsc = promisify(execFile)(join(root, 'node_modules/.bin/tsc'), words)
    return tsc.then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => stdout,
    )
  }

  it('says in one line which Node it needs', async () => {
    const older = "data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '20.19.0' })"
    const child = client.start('old.mjs', "import 'tokenmill-client'\n", { nodeArgs: ['--import', older] })
    expect((await child.exit).code).toBe(78)
    expect(child.stderr()).toBe(
      'tokenmill-client needs Node 22 or newer; this is 20.19.0. Install Node 24, then run the program again.\n',
    )
  })

  it('names HTTP to a program that finds no Redis', async () => {
    const program = `import { connect } from 'tokenmill-client'
      const clientFile = process.env.CLIENT_FILE
      await connect({ redisUrl: 'redis://127.0.0.1:1', clientFile }).catch(error => console.log(error.name, error.message))`
    const file = join(client.project, 'nobody.json')
    const key = {
      kty: 'OKP',
      crv: 'Ed25519',
      d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
      x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
    }
    writeFileSync(join(client.project, 'nobody.jwk'), JSON.stringify(key))
    const uuid = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
    const content = {
      client_id: 'c0123456789abcdefghijkmnpq',
      user_id: uuid,
      entity_id: uuid,
      signing_key_file: 'nobody.jwk',
      capture_keys: {},
      base_url: 'http://x',
      audience: 'tokenmill',
      installation_keys: { keys: [] },
    }
    writeFileSync(file, JSON.stringify(content))
    const child = client.start('no-redis.mjs', program, { env: { CLIENT_FILE: file } })
    await child.exit
    expect(child.stdout()).toMatch(/^ConnectError no Redis that can be used answers at 127\.0\.0\.1:1\. .*connectHttp/)
  })
})

describe.skipIf(!redisUrl())('a program of docs/upstream.md', () => {
  let database: FreshDatabase
  let installation: Installation
  let gateway: Caller

  beforeAll(async () => {
    database = await freshDatabase()
    const redisUrls = [redisUrl() ?? '']
    const engine: Engine = { name: 'redis', prefix: `{packed-${process.pid}}`, redisUrls, databaseUrl: database.url }
    installation = await openInstallation(engine)
    await installation.openWorkers()
    gateway = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await gateway?.close()
    await installation?.close()
    await database?.drop({ force: true })
  })

  const http = () => ({ BASE_URL: gateway.url, CLIENT_FILE: installation.clientFile })
  const queues = () => ({
    REDIS_URL: redisUrl(),
    CLIENT_FILE: installation.clientFile,
    TOKENMILL_PREFIX: `{packed-${process.pid}}`,
    TOKEN_SCOPE: installation.scope,
  })
  const run = async (name: string, env: Record<string, string | undefined>, node: string, cwd = client.project) => {
    const child = client.start(name, programOf(name), { env, node, cwd })
    const { code } = await child.exit
    expect([code, child.stderr()]).toEqual([0, ''])
    return child.stdout()
  }

  it('makes its first token over HTTP', async () => {
    for (const node of client.nodes)
      expect(await run('first-token.mjs', http(), node)).toMatch(/^t\w+ stands for a card that ends in 1111, ACTIVE\n$/)
  })

  it('makes it over the queues, and sends many jobs', async () => {
    for (const node of client.nodes)
      expect(await run('first-job.mjs', queues(), node)).toMatch(
        /^t\w+\n(ACTIVATE|SUSPEND) \w+\n(ACTIVATE|SUSPEND) \w+\n$/,
      )
  })

  it.each([
    ['the queues', queues],
    ['HTTP', http],
  ])('sends a list over %s, goes on after each kill -9, and each record has one result', async (way, env) => {
    const size = way === 'HTTP' ? 60_000 : 20_000
    // Another list for each way: the same numbers are the same tokens.
    const program = programOf('list.mjs').replace('411111', way === 'HTTP' ? '400000' : '411111')
    const cwd = mkdtempSync(join(client.project, 'list-'))
    const options = { env: { ...env(), SIZE: String(size) }, cwd, node: client.nodes.at(-1) ?? process.execPath }
    let kills = 0
    for (; kills < 10; kills += 1) {
      const child = client.start('list.mjs', program, options)
      const ended = await Promise.race([child.exit, pause(400 + 200 * kills)])
      if (ended) break
      await child.kill9()
    }
    const last = client.start('list.mjs', program, options)
    expect(await last.exit).toEqual({ code: 0, signal: null })
    const lines = readFileSync(join(cwd, 'results.ndjson'), 'utf8').trimEnd().split('\n')
    const results = lines.map(line => JSON.parse(line) as { reference: string; outcome: string; token: string })
    expect(kills).toBeGreaterThan(0)
    expect(new Set(results.map(({ reference }) => reference)).size).toBe(size)
    expect(new Set(results.map(({ token }) => token)).size).toBe(size)
    expect([...new Set(results.map(({ outcome }) => outcome))]).toEqual(['CREATED'])
    expect(results).toHaveLength(size)
  })
})
