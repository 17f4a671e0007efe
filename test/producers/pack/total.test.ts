// Both halves of the total of a migration over the same files: the vault's, which workers compute from sealed rows, and the
// sender's, which docs/sign-off/total.py computes from the rows that were sent.
import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Client, connect } from '../../../producers/client.ts'
import { computeTotal, type MigrationTotal } from '../../../producers/pack/total.ts'
import { decryptOpenpgp, makePgpKeyPair, readKeys } from '../../../producers/rows/openpgp/decrypt.ts'
import * as totals from '../../../src/store/total/totals.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import { childrenRunning, kill9 } from '../../chaos/bundle.ts'
import { readDatabase, readFiles, readRedis } from '../../security/places.ts'
import { type Ended, runCommand } from '../../support/command.ts'
import { describeEngines } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type Child, startCommand } from '../../support/process.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'

const RECIPE = fileURLToPath(new URL('../../../docs/sign-off/total.py', import.meta.url))
const MIGRATION = 'acme-2030'

/** A row of a file; its line is its place behind the header. */
interface Row {
  number: string
  /** MM and YY. */
  expiry: [string, string]
  reference: string
}

/** A row as the sender's half reads it. */
interface Sent {
  number: string
  expiry: string
  reference: string
  brand: string
  line: string
  batch_id: string
}

const row = (index: number, expiry: Row['expiry'] = ['12', '31']): Row => ({
  number: testPan(index),
  expiry,
  reference: `c-${index}`,
})

describeEngines('the total of a migration', engine => {
  let installation: Installation
  let workers: Child
  let client: Client
  let batches: string[]
  let rows: Sent[]
  let key: string
  let total: MigrationTotal

  const cli = (...words: string[]): Promise<Ended> => runCommand(words, { env: installation.env })
  const path = (name: string) => join(installation.dataDir, name)
  const compute = (migration = MIGRATION, of = batches) =>
    computeTotal({ store: installation.vault.store, actor: 'test' }, { migration, batches: of })

  /** Migrates a file of these rows; returns the id of its batch, and the rows that took effect as they were sent. */
  async function migrate(name: string, given: readonly Row[], ...options: string[]) {
    const text = given.map(({ number, expiry, reference }) => `${reference},${number},${expiry.join('/')}`)
    await writeFile(path(name), `reference,card_number,expiry\n${text.join('\n')}\n`)
    const words = ['migrate', path(name), '--client', installation.clientFile, '--json', '--chunk', '100', ...options]
    const ended = await cli(...words)
    expect([0, 3], ended.stderr).toContain(ended.code)
    const { batch_id: batchId } = JSON.parse(ended.stdout) as { batch_id: string }
    const results = (await readFile(`${path(name)}.results.csv`, 'utf8')).trim().split('\n').slice(1)
    const took = new Set(results.filter(line => !line.includes(',REJECTED,')).map(line => line.split(',')[0]))
    const sent = given.map(({ number, expiry: [month, year], reference }, index): Sent => {
      const brand = number.startsWith('4') ? 'VISA' : 'MASTERCARD'
      return { number, expiry: `20${year}${month}`, reference, brand, line: String(index + 2), batch_id: batchId }
    })
    return { batchId, sent: sent.filter(({ line }) => took.has(line)) }
  }

  /** What the sender computes of these rows. */
  async function computeAsSender(sent: readonly Sent[], { exceptions }: Pick<MigrationTotal, 'exceptions'>) {
    const columns = ['number', 'expiry', 'reference', 'brand', 'line', 'batch_id'] as const
    const input = [columns.join(), ...sent.map(one => columns.map(name => one[name]).join())].join('\n')
    const leftOut = exceptions.map(({ batch_id, line }) => `${batch_id},${line}`)
    await writeFile(path('left-out.csv'), `batch_id,line\n${leftOut.join('\n')}\n`)
    const args = [RECIPE, '--key', key, '--leave-out', path('left-out.csv')]
    const ended = spawnSync('python3', args, { input: `${input}\n`, encoding: 'utf8' })
    expect(ended.status, ended.stderr).toBe(0)
    return JSON.parse(ended.stdout) as Pick<MigrationTotal, 'rows' | 'sha256' | 'by_brand'>
  }

  const vaultsHalf = ({ rows, sha256, by_brand }: MigrationTotal) => ({ rows, sha256, by_brand })

  beforeAll(async () => {
    installation = await openInstallation(engine)
    workers = startCommand(['workers'], {
      env: { ...installation.env, TOKENMILL_LOG_LEVEL: 'trace', TOKENMILL_PROCESSES: '1' },
    })
    await workers.line(/all worker processes work/, { stream: 'stderr' })
    client = await connect({ queues: installation.queues, credentials: installation.credentials })
    const { publicKey, privateKey } = await makePgpKeyPair('sender')
    await writeFile(path('sender.asc'), publicKey)
    await writeFile(path('sender.key'), privateKey)
    const first = [
      ...Array.from({ length: 2_450 }, (_, index) => row(index)),
      ...Array.from({ length: 60 }, (_, index) => row(index)),
      ...Array.from({ length: 20 }, (_, index) => ({ ...row(index), number: '4111111111111112' })),
      { ...row(0), number: '5555555555554444', reference: '' },
      // The later line gives the card another date, so the earlier line differs from the vault.
      row(7, ['01', '32']),
    ]
    const second = [
      ...Array.from({ length: 100 }, (_, index) => row(index + 100, ['06', '33'])),
      ...Array.from({ length: 2_500 }, (_, index) => row(index + 3_000)),
    ]
    const one = await migrate('one.csv', first)
    const two = await migrate('two.csv', second, '--on-conflict', 'keep')
    batches = [one.batchId, two.batchId]
    rows = [...one.sent, ...two.sent]
  })
  afterAll(async () => {
    await client?.close()
    workers?.signal('SIGTERM')
    await workers?.exit
    await installation?.close()
  })

  it('has a key that only its sender reads, the same at each call', async () => {
    await expect(compute()).rejects.toThrow(/has no key .* total-key --migration acme-2030/)
    const words = ['manifest', 'total-key', '--migration', MIGRATION, '--to', path('sender.asc'), '--json']
    const given: string[] = []
    for (const name of ['one.asc', 'two.asc']) {
      const ended = await cli(...words, '--out', path(name))
      expect(ended, ended.stderr).toMatchObject({ code: 0 })
      given.push(await decrypted(path(name), path('sender.key')))
    }
    const [text = ''] = given
    expect(given).toEqual([text, text])
    expect(text).toMatch(/^[0-9a-f]{64}\n$/)
    key = path('key.txt')
    await writeFile(key, text)
    const wrong = await cli(...words.slice(0, -2), path('sender.key'), '--out', path('x.asc'))
    expect(wrong).toMatchObject({ code: 64, stderr: expect.stringContaining('private key') })
  })

  it('has no name that could be a card number', async () => {
    const number = '4111111111111111'
    const named = ['--migration', number]
    const commands = [
      ['total-key', ...named, '--to', path('sender.asc'), '--out', path('pan.asc')],
      ['total', ...batches, ...named],
      ['pack', ...batches, ...named, '--no-total'],
      ['sign-off', ...named],
    ]
    for (const words of commands) {
      const { code, stderr } = await cli('manifest', ...words)
      expect({ code, stderr }).toMatchObject({ code: 64, stderr: expect.stringContaining('could be a card number') })
      expect(stderr).not.toContain(number)
    }
  })

  it('is the same on both sides, over files, duplicates and rejected rows', async () => {
    total = await compute()
    expect(await computeAsSender(rows, total)).toEqual(vaultsHalf(total))
    expect(total).toMatchObject({
      migration: MIGRATION,
      rows: rows.length - total.exceptions.length,
    })
    expect(Object.keys(total.by_brand)).toEqual(['VISA'])
    expect(total.by_brand['VISA']?.rows).toBe(total.rows - 1)
  })

  it('leaves out rows whose stored date is not the file’s, and names them', () => {
    const lines = total.exceptions.map(({ batch_id, line, reason }) => [batches.indexOf(batch_id), line, reason])
    const ofFirst = [7, 2_457].map(index => [0, index + 2, 'expiry_differs'])
    const ofSecond = Array.from({ length: 100 }, (_, index) => [1, index + 2, 'expiry_differs'])
    expect(lines).toEqual([...ofFirst, ...ofSecond])
    expect(total.exceptions[0]).toMatchObject({ reference: 'c-7' })
  })

  it('shows that one row is missing, or that two references are swapped', async () => {
    const missing = await computeAsSender(rows.slice(1), total)
    expect(missing).toMatchObject({ rows: total.rows - 1 })
    const [one, two, ...others] = rows
    if (!one || !two) throw new Error('there are rows')
    const swapped = [{ ...one, reference: two.reference }, { ...two, reference: one.reference }, ...others]
    const found = await computeAsSender(swapped, total)
    expect(found.rows).toBe(total.rows)
    expect(found.sha256).not.toBe(total.sha256)
    expect(found.by_brand['VISA']?.sha256).not.toBe(total.by_brand['VISA']?.sha256)
  })

  // The engines differ in how a job comes back, which test/chaos tries on both.
  it.runIf(engine.name === 'redis')(
    'comes out the same after a worker was killed in the middle of a part',
    async () => {
      const { store } = installation.vault
      // In an object, because a promise alone would be awaited before the lock is released.
      const { again } = await store.transaction(async db => {
        await db.query({ text: 'lock table tokenmill.manifest_run in exclusive mode' })
        const again = compute()
        again.catch(() => {})
        await until(async () => (await waiting(installation)) > 0, { what: 'a worker that stores digests' })
        kill9(childrenRunning('worker-process', workers.pid))
        return { again }
      })
      expect(await again).toMatchObject({ sha256: total.sha256, rows: total.rows })
    },
  )

  it('names rows whose token was deleted or got another number since', async () => {
    const results = (await readFile(`${path('one.csv')}.results.csv`, 'utf8')).trim().split('\n').slice(1)
    const tokenOf = (line: number) => results.find(text => text.startsWith(`${line},`))?.split(',')[4] ?? ''
    expect(parseReuseToken(tokenOf(502))).toBeDefined()
    expect(await client.call('token-lifecycle', { id: tokenOf(502), action: 'DELETE' })).toMatchObject({ code: 204 })
    const sealed = await client.encryptCard({ cardNumber: testPan(9_000), expiryMonth: 12, expiryYear: 2031 })
    expect(await client.call('token-update', { id: tokenOf(602), ...sealed })).toMatchObject({ code: 200 })
    const later = await compute()
    const added = later.exceptions.filter(({ reason }) => reason !== 'expiry_differs')
    expect(added).toMatchObject([
      { batch_id: batches[0], line: 502, reference: 'c-500', reason: 'token_deleted' },
      { batch_id: batches[0], line: 602, reference: 'c-600', reason: 'number_differs' },
    ])
    expect(await computeAsSender(rows, later)).toEqual(vaultsHalf(later))
  })

  it('leaves no digest behind, and after some time nothing but audit rows', async () => {
    const { store } = installation.vault
    expect((await store.query({ text: 'select from tokenmill.manifest_run' })).rows).toEqual([])
    await totals.removeUnwanted(store, Date.now() + 60_000)
    const { rows: left } = await store.query<{ n: number }>({
      text: `select (select count(*) from tokenmill.manifest_total) + (select count(*) from tokenmill.manifest_part)
 + (select count(*) from tokenmill.manifest_run) as n`,
    })
    expect(left).toEqual([{ n: 0 }])
    const { rows: acts } = await store.query<{ action: string; n: number }>({
      text: `select action, count(*)::integer as n from tokenmill.audit where subject = $1 group by action order by 1`,
      values: [MIGRATION],
    })
    expect(acts).toEqual([
      { action: 'manifest.key.hand-out', n: 2 },
      { action: 'manifest.key.make', n: 1 },
      { action: 'manifest.total', n: engine.name === 'redis' ? 3 : 2 },
    ])
  })

  it('holds no number in clear, wherever it was computed', async () => {
    const cards = [500, 600, 3_100].map(index => ({ name: `row ${index}`, pan: testPan(index) }))
    const places = [
      ...(await readDatabase(engine.databaseUrl)),
      ...(engine.redisUrls?.[0] ? await readRedis(engine.redisUrls[0], engine.prefix) : []),
      { name: 'logs of workers', text: workers.stdout() + workers.stderr() },
      ...(await readFiles(installation.dataDir, name => !/(one|two)\.csv$/.test(name))),
    ]
    expect(places.length).toBeGreaterThan(30)
    // The middle digits of these numbers are zeros, as in many counters, so only the whole number is searched for.
    expect(places.flatMap(({ name, text }) => cards.filter(({ pan }) => text.includes(pan)).map(() => name))).toEqual(
      [],
    )
  })

  it('can no longer be computed once the migration is signed off', async () => {
    const signOff = ['manifest', 'sign-off', '--migration', MIGRATION]
    expect(await cli(...signOff)).toMatchObject({ code: 0 })
    await expect(compute()).rejects.toThrow(/was signed off on 20.* destroyed the key/)
    expect(await cli(...signOff)).toMatchObject({ code: 1, stderr: expect.stringContaining('is signed off') })
    const words = [
      'manifest',
      'total-key',
      '--migration',
      MIGRATION,
      '--to',
      path('sender.asc'),
      '--out',
      path('3.asc'),
    ]
    expect(await cli(...words)).toMatchObject({ code: 1, stderr: expect.stringContaining('is signed off') })
  })
})

async function decrypted(path: string, privateKey: string): Promise<string> {
  const keys = await readKeys({ decryptKeyFile: privateKey })
  const pieces: Buffer[] = []
  async function* bytes() {
    yield await readFile(path)
  }
  for await (const piece of decryptOpenpgp(path, bytes(), keys)) pieces.push(piece)
  return Buffer.concat(pieces).toString('utf8')
}

/** How many connections wait for a lock. */
async function waiting({ vault }: Installation): Promise<number> {
  const { rows } = await vault.store.query<{ n: number }>({
    text: `select count(*)::integer as n from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like '%manifest_run%'`,
  })
  return rows[0]?.n ?? 0
}
