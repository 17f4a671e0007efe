// `key rotate fingerprint` and `key retire fingerprint` during a dump of the database, and with more fingerprints than
// one page of the removal.

import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { withKeys, withPhase } from '../../../src/vault/ring/key-lives.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { until } from '../../support/until.ts'
import { writeLives } from '../../vault/write-lives.ts'
import { insertTokens } from '../../workers/reseal/tokens.ts'
import { cli } from '../command-bench.ts'

const KEPT = 60
/** Two and a half pages of the removal. */
const FORGOTTEN = 2_500
const WAITS = /Waiting for transactions that hold the tables of cards, .* Now: .*pid \d+ \(pg_dump\)/

describeStore('the fingerprint key', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await insert(KEPT - 10, 0)
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(() => installation?.close())

  const insert = (count: number, from: number) =>
    insertTokens(installation.vault.store, installation.vault.ring, installation.scope, count, from)
  const ask = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const cards = () =>
    ask<{ version: number; rows: number }>('select version, count(*) as rows from tokenmill.card group by 1 order by 1')
  const start = (...words: string[]) =>
    startCommand(['key', ...words], { env: installation.env as Record<string, string> })
  /** Opens another session with a transaction that ends at `end`. */
  async function open(name: string, statement: string, values: unknown[] = []): Promise<{ end(): Promise<void> }> {
    const client = new pg.Client({ connectionString: installation.env['DATABASE_URL'], application_name: name })
    await client.connect()
    await client.query('begin')
    await client.query(statement, values)
    return {
      async end() {
        await client.query('commit')
        await client.end()
      },
    }
  }
  /** Takes the lock that pg_dump holds on each table. */
  const dump = () => open('pg_dump', 'lock table tokenmill.key_lives in access share mode')

  it('waits with its phases for a dump, says so, and lets cards be written meanwhile', async () => {
    const dumping = await dump()
    const rotating = start('rotate', 'fingerprint')
    await rotating.line(WAITS, { stream: 'stderr' })
    await insert(10, KEPT - 10)
    expect((await installation.vault.lives.read()).phase).toMatchObject({ phase: 'SINGLE', writes: [1] })
    await dumping.end()
    expect(await rotating.exit).toMatchObject({ code: 0 })
    expect(await cards()).toEqual([{ version: 2, rows: KEPT }])
  })

  it('is retired after a dump, page after page, and a run that was killed goes on', async () => {
    await installation.vault.ring.refresh()
    const forgotten = await insert(FORGOTTEN, KEPT)
    // Changes the tokens to ones without a number, whose fingerprints the rotation can't replace.
    await ask(
      `update tokenmill.token set sealed = null, seal_version = null, token_type = 'ANALYTICS' where token_id = any($1::uuid[])`,
      [forgotten],
    )
    await ask('update tokenmill.card set version = 1 where token_id = any($1::uuid[])', [forgotten])
    await writeLives(installation.vault, now =>
      withPhase(
        withKeys(now, 'fingerprint', keys => keys),
        { ...now.phase, looks: [2, 1] },
      ),
    )
    const [busy] = await ask<{ id: string }>(
      'select token_id as id from tokenmill.card where version = 1 order by fp offset 1500 limit 1',
    )
    const working = await open('a job', 'select from tokenmill.token where token_id = $1 for update', [busy?.id])
    const dumping = await dump()
    const retiring = start('retire', 'fingerprint', '1', '--forget')
    await retiring.line(WAITS, { stream: 'stderr' })
    expect(await cards()).toContainEqual({ version: 1, rows: FORGOTTEN })
    await dumping.end()
    await until(async () => (await cards()).some(({ version, rows }) => version === 1 && rows === FORGOTTEN - 1_000))
    await retiring.kill9()
    await working.end()
    const again = await cli(['key', 'retire', 'fingerprint', '1', '--forget', '--json'], { env: installation.env })
    expect(again).toMatchObject({ status: 0 })
    expect(again.json()).toEqual({ purpose: 'fingerprint', version: 1, forgotten: FORGOTTEN - 1_000 })
    expect(await cards()).toEqual([{ version: 2, rows: KEPT }])
    const left = await ask<{ cards: number; rows: number }>(
      'select cardinality(cards) as cards, count(*) as rows from tokenmill.token group by 1 order by 1',
    )
    expect(left).toEqual([
      { cards: 0, rows: FORGOTTEN },
      { cards: 1, rows: KEPT },
    ])
  })
})
