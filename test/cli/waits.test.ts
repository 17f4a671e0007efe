// Commands that wait for answers, as processes: they end where no answer will come, at signals, and when they were told to
// give up. What they end with can be gone on with.
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as clients from '../../src/store/access/clients.ts'
import { describeEngines, type Engine } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { type Child, type Exit, startCommand } from '../support/process.ts'
import { testPan } from '../support/test-pan.ts'
import { until } from '../support/until.ts'

const NOT_FOUND = `t${'0'.repeat(26)}`
const ENDS = { ms: 90_000, what: 'the end of the command' }

describeEngines('a command that waits for answers', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  }, 60_000)
  afterAll(() => installation?.close())

  const command = (words: string[]) => startCommand(words, { env: senderEnv(engine, installation), group: true })
  const inFolder = (name: string) => join(installation.dataDir, name)

  async function write(name: string, lines: readonly string[]): Promise<string> {
    await writeFile(inFolder(name), lines.map(line => `${line}\n`).join(''))
    return inFolder(name)
  }
  const cards = (name: string, rows: number) =>
    write(name, ['card_number,expiry', ...Array.from({ length: rows }, (_, i) => `${testPan(i)},12/30`)])
  const jobs = (name: string, lines: number) =>
    write(
      name,
      Array.from({ length: lines }, () => JSON.stringify(lifecycle)),
    )
  const sale = [
    '7d1f2b80-4c1e-4a53-9b0c-3e5f6a7b8c01',
    ...[ENTITY, 'SALE', 'EUR', '25.00', '0.30', '0.10', '2026-11-20T10:15:00Z', '2026-11-20'],
  ].join()
  const ledger = (name: string) =>
    write(name, ['transaction_uid,entity_uid,type,currency,amount,fee,commission,created_at,clearing_date', sale])

  describe('with workers', () => {
    beforeAll(async () => {
      await installation.startWorkers()
    }, 60_000)

    it('ends with 78 where its client is unknown or revoked', async () => {
      const { clientFile, credentials } = await installation.addClient('revoked')
      await clients.revoke(installation.vault.store, credentials.signingKey.clientId)
      const strange = await strangeClient(installation)
      const children = [
        command(['submit', await jobs('a.ndjson', 3), '--client', clientFile]),
        command(['submit', await jobs('b.ndjson', 3), '--client', strange]),
        command(['migrate', await cards('c.csv', 3), '--client', clientFile]),
        command(['ingest', 'transactions', await ledger('d.csv'), '--client', clientFile]),
      ]
      for (const child of children) {
        expect(await ended(child), child.stderr()).toEqual({ code: 78, signal: null })
        expect(child.stderr()).toMatch(/takes nothing from client|does not know/)
      }
    }, 120_000)

    it('ends with 78 where its client is revoked in the midst of it', async () => {
      const { clientFile, credentials } = await installation.addClient('going')
      const child = command(['submit', await jobs('e.ndjson', 40_000), '--client', clientFile])
      await child.line(/"code":404/, { ms: 60_000 })
      await clients.revoke(installation.vault.store, credentials.signingKey.clientId)
      expect(await ended(child), child.stderr().slice(-1_000)).toEqual({ code: 78, signal: null })
      expect(child.stderr()).toContain(`takes nothing from client ${credentials.signingKey.clientId}`)
    }, 120_000)
  })
})

describeEngines('a command that nobody answers', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  }, 60_000)
  afterAll(() => installation?.close())

  const start = (words: string[]) =>
    startCommand([...words, '--client', installation.clientFile], {
      env: senderEnv(engine, installation),
      group: true,
    })
  /** The queues hold nothing then: a job in one is of a command that runs. */
  async function files() {
    for (const queue of ['token-batch', 'token-lifecycle']) await installation.queues.obliterate(queue)
    const csv = join(installation.dataDir, 'cards.csv')
    const ndjson = join(installation.dataDir, 'jobs.ndjson')
    await writeFile(csv, `card_number,expiry\n${testPan(1)},12/30\n`)
    await writeFile(ndjson, `${JSON.stringify(lifecycle)}\n`)
    return { csv, ndjson }
  }
  const waiting = (queue: string) =>
    until(async () => (await installation.queues.depth(queue)).waiting > 0, { ms: 60_000, what: `a job in ${queue}` })

  it('ends at once at a second signal', async () => {
    const { csv, ndjson } = await files()
    const [migrate, submit] = [start(['migrate', csv]), start(['submit', ndjson])]
    await Promise.all([waiting('token-batch'), waiting('token-lifecycle')])
    for (const [child, first, second] of [
      [migrate, 'SIGINT', 'SIGTERM'],
      [submit, 'SIGINT', 'SIGINT'],
    ] as const) {
      child.signal(first)
      await child.line(/finishing the work in flight/, { stream: 'stderr' })
      const askedAt = performance.now()
      child.signal(second)
      expect(await child.exit).toEqual({ code: 130, signal: null })
      expect(performance.now() - askedAt).toBeLessThan(5_000)
    }
  }, 120_000)

  it('ends with 1 about 20 s after a first signal, whatever it is doing', async () => {
    const { csv, ndjson } = await files()
    const results = join(installation.dataDir, 'stdin.results.csv')
    const reading = start(['migrate', '-', '--format', 'csv', '--batch-id', 'endless', '--results', results])
    reading.write(`card_number,expiry\n${testPan(2)},12/30\n`)
    const children = [start(['migrate', csv]), start(['submit', ndjson]), reading]
    await Promise.all([waiting('token-batch'), waiting('token-lifecycle')])
    const locked = async () => (await readdir(installation.dataDir)).some(name => name.startsWith('stdin.results.csv'))
    await until(locked, { ms: 60_000, what: 'the run from standard input' })
    const askedAt = performance.now()
    for (const child of children) child.signal('SIGTERM')
    for (const child of children) {
      expect(await ended(child), child.stderr()).toEqual({ code: 1, signal: null })
      expect(child.stderr()).toContain('run the same command again')
    }
    expect(performance.now() - askedAt).toBeGreaterThan(19_000)
    expect(performance.now() - askedAt).toBeLessThan(50_000)
  }, 180_000)

  it('gives up after the time that it was told, with 1, and the same command goes on', async () => {
    const { csv, ndjson } = await files()
    const run = async (words: string[]) => {
      const child = start(words)
      return { ...(await ended(child)), said: child.stderr() }
    }
    const told = await Promise.all([
      run(['migrate', csv, '--give-up-after', '2']),
      run(['submit', ndjson, '--give-up-after', '2']),
    ])
    for (const { code, said } of told) {
      expect(code, said).toBe(1)
      expect(said).toContain('no answer came for 2 s (--give-up-after)')
      expect(said).toContain('run the same command again to continue')
    }
    await installation.startWorkers()
    expect(await run(['migrate', csv, '--give-up-after', '60'])).toMatchObject({ code: 0 })
    expect(await run(['submit', ndjson])).toMatchObject({ code: 3 })
  }, 180_000)
})

const lifecycle = { kind: 'token-lifecycle', request: { id: NOT_FOUND, action: 'SUSPEND' } }

/** A pure producer on Redis; beside the store on PostgreSQL. */
function senderEnv(engine: Engine, { env }: Installation): Record<string, string | undefined> {
  const producer = engine.redisUrls ? { DATABASE_URL: undefined, TOKENMILL_KEK_FILE: undefined } : {}
  return { ...env, ...producer, TOKENMILL_METRICS_PORT: undefined, TOKENMILL_LOG_LEVEL: undefined }
}

/** The file of a client that this installation never heard of; all else in it is right. */
async function strangeClient({ clientFile }: Installation): Promise<string> {
  const path = join(dirname(clientFile), 'strange.json')
  const file = JSON.parse(await readFile(clientFile, 'utf8')) as { client_id: string }
  await writeFile(path, JSON.stringify({ ...file, client_id: `c${'0'.repeat(25)}` }))
  return path
}

async function ended(child: Child): Promise<Exit> {
  let exit: Exit | undefined
  child.exit.then(
    found => {
      exit = found
    },
    () => {},
  )
  return until(() => exit, ENDS)
}
