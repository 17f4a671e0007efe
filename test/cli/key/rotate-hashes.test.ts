// The keys of keyed hashes are replaced while workers run: repeated jobs, codes of rows that grant rights, and the end
// of a former version.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { GRANT_LISTS } from '../../../cli/open/grant-lists.ts'
import { listUngranted } from '../../../src/acts/grants.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import { hashedColumnsOf } from '../../../src/store/reseal/hashed-columns.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { cli } from '../command-bench.ts'
import { openTwoOperators } from './two-operators.ts'

const REQUEST = { id: 't01jd3x8z7q2m4n6p8r0s2t4v6w', action: 'SUSPEND' } as const

describeOnRedis('key rotate of a key that hashes', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers()
  })
  afterAll(() => installation?.close())

  const run = (...words: string[]) => cli(['key', ...words], { env: installation.env })
  const states = async (purpose: string) => {
    const keys = await dataKeys.list(installation.vault.store)
    return keys.filter(one => one.purpose === purpose).map(({ version, state }) => `${version} ${state}`)
  }
  const query = async <Row>(text: string) => (await installation.vault.store.query<Row & object>({ text })).rows

  it('answers every repeat from its receipt all the while', async () => {
    const client = await installation.connect()
    const codes = new Set<string>()
    let isRotating = true
    const traffic = (async () => {
      for (let job = 0; isRotating; job++)
        for (const jti of [`job-${job}`, `job-${Math.floor(job / 2)}`, 'job-0']) {
          const { code, revision } = await client.call('token-lifecycle', REQUEST, { jti })
          codes.add(`${code} revision ${revision}`)
        }
    })()
    const rotated = await run('rotate', 'digest')
    isRotating = false
    await traffic
    expect(rotated).toMatchObject({
      status: 0,
      stdout: expect.stringMatching('digest/1 is compared with what it hashed'),
    })
    expect([...codes]).toEqual(['404 revision 1'])
    const named = () => query<{ version: number }>('select distinct digest_version as version from tokenmill.receipt')
    await until(async () => {
      await client.call('token-lifecycle', REQUEST)
      return (await named()).length === 2
    })
    for (const jti of ['job-0', 'job-1'])
      expect(await client.call('token-lifecycle', REQUEST, { jti })).toMatchObject({ code: 404, revision: 1 })
  })

  it('codes the rows that grant rights anew, and workers go on', async () => {
    const client = await installation.connect()
    const contract = [
      ...['threeds-contract', 'add', 'shop', '--entity', ENTITY, '--directory-server', 'https://ds.example/areq'],
      ...['--acquirer-bin', '400000', '--acquirer-merchant-id', 'm-1', '--mcc', '5999', '--country', 'GB'],
      ...['--requestor-url', 'https://shop.example', '--notification-url', 'https://pay.example/return'],
    ]
    const endpoint = ['events', 'add', 'first', '--to', 'https://shop.example/', '--events', 'batch.finished']
    for (const words of [contract, endpoint])
      expect(await cli(words, { env: installation.env }), words[0]).toMatchObject({ status: 0 })
    let isRotating = true
    const codes = new Set<number>()
    const traffic = (async () => {
      while (isRotating) codes.add((await client.call('token-lifecycle', REQUEST)).code)
    })()
    const rotated = await run('rotate', 'grant')
    expect(rotated).toMatchObject({ status: 0, stderr: expect.stringMatching(/\d+ rows that grant rights got codes/) })
    isRotating = false
    await traffic
    expect([...codes]).toEqual([404])
    expect(await client.call('token-lifecycle', REQUEST)).toMatchObject({ code: 404 })
    expect(await query('select from tokenmill.threeds_contract where mac_version = 2')).toHaveLength(1)
    expect(await query('select from tokenmill.endpoint where mac_version = 2')).toHaveLength(1)
    for (const { table } of hashedColumnsOf('grant') ?? [])
      expect(await query(`select from tokenmill.${table} where mac_version = 1`), table).toEqual([])
    const { store, ring } = installation.vault
    await ring.refresh()
    expect(await listUngranted(store, ring, GRANT_LISTS)).toEqual([])
    expect(await run('reseal', 'grant')).toMatchObject({ status: 0, stdout: expect.stringMatching('^0 rows') })
  })

  it('destroys a former version only when no row names it any more', async () => {
    await query(`update tokenmill.data_key set retired_at = now() - interval '25 hours' where state = 'DECRYPT_ONLY'`)
    const operators = await openTwoOperators(installation)
    const destroy = (purpose: string) => ['key', 'destroy', purpose, '1', '--backups-are-gone', '--yes']
    const run = (purpose: string) => cli([...destroy(purpose), ...operators.signed], { env: installation.env })
    expect((await run('digest')).stderr).toMatch(
      /Rows still name digest\/1: \d+ in receipt\S*; .*TOKENMILL_RECEIPT_DAYS; run/,
    )
    await query('delete from tokenmill.receipt where digest_version = 1')
    await query(`alter table tokenmill.authentication disable trigger all;
insert into tokenmill.authentication (authentication_id, transaction_id, entity_id, contract_id, client_id, amount,
  currency_code, message_category, network, state, asked_until, pending_until, created_at, updated_at, version)
select id, id, id, id, 'shop', 100, 'EUR', 'PA', 'VISA', 'OPEN', now(), now(), now(), now(), 1
from gen_random_uuid() as id`)
    const { stderr } = await run('digest')
    expect(stderr).toMatch(/Rows still name digest\/1: 1 in authentication\S*; .* 750 days; run/)
    expect(stderr).not.toContain('TOKENMILL_RECEIPT_DAYS')
    await query('delete from tokenmill.authentication; alter table tokenmill.authentication enable trigger all')
    for (const purpose of ['digest', 'grant']) {
      await operators.confirm(destroy(purpose), installation.env)
      expect(await run(purpose)).toMatchObject({ status: 0 })
    }
    expect(await states('grant')).toEqual(['1 DESTROYED', '2 ACTIVE'])
  })
})
