// For a known BIN and last four about a thousand card numbers pass Luhn. A client that tries them is stopped after ten:
// one by one, many at once, in a chunk, and in a dry run. Dry runs also have a daily limit of rows. CONTRACT 6.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { runCommand } from '../support/command.ts'
import type { Engine } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { canary, guesses } from './canary.ts'
import { type Counters, openCounters } from './metrics.ts'

const MOST = 10
const DRY_RUN_ROWS = 230

describe('guessing card numbers', () => {
  let database: FreshDatabase
  let installation: Installation
  let client: Client
  let counters: Counters
  let inputs: string
  beforeAll(async () => {
    inputs = await mkdtemp(join(tmpdir(), 'tokenmill-inputs-'))
    database = await freshDatabase()
    const engine: Engine = { name: 'postgres', prefix: '{guessing}', redisUrls: undefined, databaseUrl: database.url }
    installation = await openInstallation(engine, { TOKENMILL_DRY_RUN_ROWS_MAX: String(DRY_RUN_ROWS) })
    counters = openCounters(await installation.openWorkers())
    client = await installation.connect()
  })
  afterAll(async () => {
    await installation?.close()
    await database?.drop()
    await rm(inputs, { recursive: true, force: true })
  })

  const card = async (cardNumber: string, by: Client = client) =>
    by.encryptCard({ cardNumber, expiryMonth: 12, expiryYear: 2031 })
  const create = async (pan: string, by: Client = client, scope = installation.scope) =>
    by.call('token-create', { token_scope: scope, ...(await card(pan, by)) })
  const isStopped = (answer: Result) => answer.error?.details?.['body.encrypted_card']?.code === 'guesses'
  const migrate = (name: string, pans: readonly string[], ...args: string[]) =>
    migrateText(
      name,
      ['reference,card_number,expiry', ...pans.map((pan, index) => `r${index},${pan},12/31`)].join('\n'),
      ...args,
    )
  const migrateText = async (name: string, content: string, ...args: string[]) => {
    const file = join(inputs, name)
    await writeFile(file, content)
    const words = ['migrate', file, '--client', installation.clientFile, '--json', ...args]
    const { code, stdout, stderr } = await runCommand(words, { env: installation.env })
    return { code, stderr, json: stdout === '' ? {} : JSON.parse(stdout) }
  }

  it('ends after ten, and nothing tells a known card from an unknown one any more', async () => {
    const pans = guesses('40000071', '4242', MOST + 3)
    for (const pan of pans.slice(0, MOST)) expect(await create(pan)).toMatchObject({ code: 200 })
    for (const pan of [...pans.slice(MOST), ...pans.slice(0, 2)]) {
      const answer = await create(pan)
      expect(answer).toMatchObject({ code: 403 })
      expect(isStopped(answer)).toBe(true)
    }
    // The client may use other cards, and another client may use these.
    expect(await create(guesses('40000071', '4243', 1)[0] as string)).toMatchObject({ code: 200 })
    const other = await installation.addClient('other')
    const theirs = await installation.connect({ credentials: other.credentials, replyTo: 'other' })
    expect(await create(pans[MOST] as string, theirs)).toMatchObject({ code: 200 })
  })

  it('ends after ten by way of updates, too', async () => {
    const pans = guesses('40000072', '4242', MOST + 1)
    const made = await create(guesses('40000072', '1111', 1)[0] as string)
    const id = made.record?.['reuse_token']
    for (const pan of pans.slice(0, MOST))
      expect(await client.call('token-update', { id, ...(await card(pan)) })).toMatchObject({ code: 200 })
    const answer = await client.call('token-update', { id, ...(await card(pans[MOST] as string)) })
    expect(isStopped(answer)).toBe(true)
    // An update with the token's own card is refused, too.
    const own = await client.call('token-update', { id, ...(await card(pans[MOST - 1] as string)) })
    expect(isStopped(own)).toBe(true)
    expect(isStopped(await create(pans[MOST] as string))).toBe(true)
  })

  it('learns nothing by what is refused for another reason', async () => {
    const pans = guesses('40000079', '4242', 3)
    const [known, unknown, own] = pans as [string, string, string]
    await create(known)
    const made = await create(own)
    const id = made.record?.['reuse_token']
    const past = { token_expiry_date: '2001-01-01' }
    const answers: Result[] = []
    for (const pan of [known, unknown, own]) {
      answers.push(await client.call('token-update', { id, ...(await card(pan)), ...past }))
      answers.push(
        await client.call('token-create', { token_scope: installation.scope, ...(await card(pan)), ...past }),
      )
    }
    expect(new Set(answers.map(({ error }) => JSON.stringify(error?.details))).size).toBe(1)
    const rows = [known, unknown, own].map((pan, index) => `r${index},${id},${pan},12,2031,2001-01-01`)
    const file = ['reference,id,card_number,expiry_month,expiry_year,token_expiry_date', ...rows].join('\n')
    const done = await migrateText('refused.csv', file, '--record-kind', 'token-update')
    expect(done, done.stderr).toMatchObject({ code: 3, json: { rejected: 3 } })
    expect(await readFile(join(inputs, 'refused.csv.results.csv'), 'utf8')).not.toMatch(/pan_taken/)
  })

  it('ends after exactly ten where many are tried at once', async () => {
    const answers = await Promise.all(guesses('40000074', '4242', 40).map(pan => create(pan)))
    expect(answers.filter(({ code }) => code === 200)).toHaveLength(MOST)
    expect(answers.filter(isStopped)).toHaveLength(40 - MOST)
  })

  it('ends after ten within one chunk of a dry run, for the card that is known as for the others', async () => {
    const pans = guesses('40000075', '4242', 50)
    const known = pans.at(-1) as string
    expect(await create(known)).toMatchObject({ code: 200 })
    const rehearsed = await migrate('guesses.csv', pans, '--dry-run')
    expect(rehearsed, rehearsed.stderr).toMatchObject({
      code: 3,
      json: { created: MOST - 1, rejected: 50 - MOST + 1, updated: 0, unchanged: 0 },
    })
    expect(isStopped(await create(pans[20] as string))).toBe(true)
    const again = await migrate('guesses-2.csv', pans.slice(20), '--dry-run', '--chunk', '5')
    expect(again, again.stderr).toMatchObject({ code: 3, json: { created: 0, rejected: 30 } })
  })

  it('ends after ten within one chunk of a dry run of updates, whatever token they name', async () => {
    const pans = guesses('40000078', '4242', 40)
    const ids: unknown[] = []
    for (const pan of [pans.at(-1) as string, guesses('40000078', '1111', 1)[0] as string])
      ids.push((await create(pan)).record?.['reuse_token'])
    for (const id of ids) {
      const rows = pans.map((pan, index) => `r${index},${id},${pan},12,2031`)
      const file = ['reference,id,card_number,expiry_month,expiry_year', ...rows].join('\n')
      const rehearsed = await migrateText(`updates-${id}.csv`, file, '--dry-run', '--record-kind', 'token-update')
      expect(rehearsed, rehearsed.stderr).toMatchObject({ code: 3, json: { unchanged: 0 } })
      const results = await readFile(join(inputs, `updates-${id}.csv.dry-run.results.csv`), 'utf8')
      expect(results).not.toMatch(/pan_taken/)
      expect(results.match(/guesses/g)?.length).toBeGreaterThanOrEqual(40 - MOST)
    }
  })

  it('in a batch leaves tokens and is counted', async () => {
    const before = await counters.read('tokenmill_card_guesses_total', { mode: 'batch' })
    const done = await migrate('batch.csv', guesses('40000076', '4242', 30))
    expect(done, done.stderr).toMatchObject({ code: 0, json: { created: 30 } })
    expect(await counters.read('tokenmill_card_guesses_total', { mode: 'batch' })).toBe(before + 30 - MOST)
  })

  it('is bounded by the day: beyond so many rows there is no dry run, and a real run goes on', async () => {
    const pans = Array.from({ length: 100 }, (_, index) => canary(`row ${index}`).pan)
    const refused = await migrate('many.csv', pans, '--dry-run')
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.stderr).toMatch(/daily limit of dry-run rows/)
    const poor = await installation.addClient('writer', { roles: ['TOKEN_WRITE'] })
    const unread = await migrate('one.csv', pans.slice(0, 1), '--dry-run', '--client', poor.clientFile)
    expect(unread).toMatchObject({ code: 1 })
    const done = await migrate('many.csv', pans)
    expect(done, done.stderr).toMatchObject({ code: 0, json: { created: 100 } })
  })
})
