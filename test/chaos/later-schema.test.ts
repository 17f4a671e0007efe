// A later release of the same major has upgraded the schema, as it does before the hosts are upgraded one by one: a worker of
// this release that is killed meanwhile comes back and works on.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MIGRATIONS } from '../../src/store/schema.ts'
import { describeStore } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type Child, startCommand } from '../support/process.ts'
import { testPan } from '../support/test-pan.ts'

describeStore('a worker under a later schema', engine => {
  let installation: Installation
  let workers: Child | undefined
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(async () => {
    await workers?.kill9()
    await installation?.close()
  })

  const begin = () => startCommand(['workers'], { env: { ...installation.env, TOKENMILL_PROCESSES: '1' } })
  const ask = (text: string) => installation.vault.store.query({ text })

  it('that only adds comes back after kill -9 and works; under one that takes away it ends with 78 and says why', async () => {
    const client = await installation.connect()
    const create = async (n: number) => {
      const card = await client.encryptCard({ cardNumber: testPan(n), expiryMonth: 12, expiryYear: 2031 })
      return client.call('token-create', { token_scope: installation.scope, ...card })
    }
    workers = begin()
    expect(await create(1)).toMatchObject({ code: 200 })
    await workers.kill9()
    await ask(`insert into tokenmill.kysely_migration values ('9999-later', '2027-01-01T00:00:00Z')`)
    await ask('alter table tokenmill.token add column later text')
    await ask('create table tokenmill.later (id integer primary key)')
    workers = begin()
    expect(await create(2)).toMatchObject({ code: 200 })
    await workers.kill9()
    await ask(`update tokenmill.schema_range set readable_from = ${MIGRATIONS.length + 1}`)
    workers = begin()
    expect(await workers.exit).toMatchObject({ code: 78 })
    expect(workers.stderr()).toContain('newer than this release can use; deploy the release that upgraded it')
  })
})
