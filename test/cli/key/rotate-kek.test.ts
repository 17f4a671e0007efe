import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as processes from '../../../src/store/access/processes.ts'
import { LostRace } from '../../../src/store/pool.ts'
import { fileKeyProvider, makeKekFile } from '../../../src/vault/kek/file.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type Child, startCommand } from '../../support/process.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'
import { cli } from '../command-bench.ts'
import { openTwoOperators, type TwoOperators } from './two-operators.ts'

const KEYS_UNDER = `select
  (select count(*)::int from tokenmill.data_key where kek_id = $1) as data_keys,
  (select kek_id = $1 from tokenmill.installation) as current`

const QUICK_WORKER = fileURLToPath(new URL('./quick-worker.ts', import.meta.url))

describeOnRedis('key rotate kek', engine => {
  let installation: Installation
  /** The key list of the workers' hosts, and that of the command's host. */
  let list: string
  let ownList: string
  let env: Record<string, string>
  let first: string
  let second: string
  let db: Client
  let operators: TwoOperators
  beforeAll(async () => {
    installation = await openInstallation(engine)
    operators = await openTwoOperators(installation)
    const [old, anew] = ['kek', 'second-kek'].map(name => join(installation.dataDir, name)) as [string, string]
    await makeKekFile(anew)
    first = (await fileKeyProvider(old)).id
    second = (await fileKeyProvider(anew)).id
    list = join(installation.dataDir, 'keks')
    await writeFile(list, `file:${old}\n`, { mode: 0o600 })
    ownList = join(installation.dataDir, 'own-keks')
    await writeFile(ownList, `file:${old}\nfile:${anew}\n`, { mode: 0o600 })
    env = { ...(installation.env as Record<string, string>), TOKENMILL_KEK: ownList, TOKENMILL_KEK_FILE: '' }
    db = new Client({ connectionString: engine.databaseUrl })
    await db.connect()
    await installation.startWorkers({ script: QUICK_WORKER, env: { ...env, TOKENMILL_KEK: list } })
  })
  afterAll(async () => {
    await db?.end()
    await installation?.close()
  })

  const live = async () => (await processes.list(installation.vault.store)).map(({ processId }) => processId).sort()
  const under = async (kekId: string) => (await db.query(KEYS_UNDER, [kekId])).rows[0]
  const rotate = (to: string): Child => startCommand(['key', 'rotate', 'kek', '--to', to, ...operators.signed], { env })

  /** Sends jobs, one after the other, until the returned function is called; that returns their codes. */
  function startTraffic(): () => Promise<number[]> {
    let ended = false
    const codes = (async () => {
      const client = await installation.connect()
      const seen: number[] = []
      for (let index = 0; !ended; index++) {
        const card = { cardNumber: testPan(index), expiryMonth: 12, expiryYear: 2035 }
        const request = { token_scope: installation.scope, ...(await client.encryptCard(card)) }
        const { code, attempt } = await client.call('token-create', request)
        seen.push(attempt === 1 ? code : attempt)
      }
      return seen
    })()
    return () => {
      ended = true
      return codes
    }
  }

  it('refuses a key that is not among this host’s, and says where to add it', async () => {
    const { status, stderr } = await cli(['key', 'rotate', 'kek', '--to', second], {
      env: { ...env, TOKENMILL_KEK: list },
    })
    expect(status).toBe(78)
    expect(stderr).toMatch(new RegExp(`^tokenmill: TOKENMILL_KEK: ${second} is none .*${first}.*add its URI to .*keks`))
  })

  it('turns there and back while jobs run, although it is killed in its midst', async () => {
    const before = await live()
    expect(before).toHaveLength(2)
    const endTraffic = startTraffic()
    await operators.confirm(['key', 'rotate', 'kek', '--to', second], env)
    const waiting = rotate(second)
    await waiting.line(/Waiting for processes .* interactive .* bulk|bulk .* interactive/, { stream: 'stderr' })
    await waiting.kill9()
    await appendFile(list, `file:${join(installation.dataDir, 'second-kek')}\n`)
    expect(await under(first)).toMatchObject({ current: true })

    // Makes the command wait inside its transaction.
    await db.query('begin')
    await db.query('select from tokenmill.kek for update')
    const held = rotate(`file:${join(installation.dataDir, 'second-kek')}`)
    await until(async () => {
      // Asked over another connection, because within one transaction the view shows the same rows each time.
      const { rows } = await installation.vault.store.query({
        text: `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
          and query like 'update tokenmill.kek%'`,
      })
      return rows.length > 0
    })
    await held.kill9()
    await db.query('rollback')
    expect(await under(first)).toMatchObject({ current: true })

    const turned = rotate(second)
    expect(await turned.exit).toMatchObject({ code: 0 })
    expect(turned.stdout()).toMatch(
      new RegExp(
        `^${second} is the current key, in place of ${first}\\.\nWith ${second} alone \\d+ data keys and, by them, \\d+ private halves open\\.`,
      ),
    )
    expect(await under(first)).toEqual({ data_keys: 0, current: false })

    const again = await cli(['key', 'rotate', 'kek', '--to', second], { env })
    expect(again).toMatchObject({ status: 0, stdout: expect.stringContaining('was the current key already') })
    const toFirst = ['key', 'rotate', 'kek', '--to', first, '--json']
    await operators.confirm(toFirst, env)
    const back = await cli([...toFirst, ...operators.signed], { env })
    expect(back.json()).toMatchObject({ kek_id: first, former_kek_id: second })
    expect(await under(second)).toEqual({ data_keys: 0, current: false })

    // A process that read the former key's id before can't store a data key that only the former key opens.
    const { store } = installation.vault
    const late = {
      purpose: 'seal',
      version: 99,
      kekId: second,
      wrapped: Buffer.from('late'),
      state: 'PENDING',
    } as const
    await expect(dataKeys.insert(store, late)).rejects.toThrow(LostRace)

    const material = await Promise.all(
      ['kek', 'second-kek'].map(name => readFile(join(installation.dataDir, name), 'utf8')),
    )
    const said = [waiting, held, turned].map(child => child.stdout() + child.stderr()).join()
    for (const text of material) expect(said).not.toContain(text.split('\n')[1])

    const codes = await endTraffic()
    expect(codes.length).toBeGreaterThan(10)
    expect(codes.filter(code => code !== 200)).toEqual([])
    expect(await live()).toEqual(before)
  })
})
