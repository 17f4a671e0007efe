// What the database roles of gateway and console may say about processes: that a process of their own lives, by the server's
// clock. Nothing that they say counts for workers, nor for an operator, except which gateways lack a key that gateways know.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { listLacking, listLackingGateways } from '../../src/acts/key/key-rotation.ts'
import { openLog } from '../../src/log.ts'
import * as processes from '../../src/store/access/processes.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { PURPOSES } from '../../src/vault/ring/key-ring.ts'
import { SHARED_PURPOSES } from '../../src/vault/ring/shared-keys.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const DENIED = '42501'
const OWN = ['gateway', 'console'] as const
const NONE = { kinds: [], features: [], keys: [] } as const
const FAR = 'infinity'

describe('the database role of', () => {
  let database: FreshDatabase
  let owner: Store
  const stores = new Map<string, Store>()
  beforeAll(async () => {
    database = await freshDatabase()
    const log = openLog('silent')
    owner = openStore(database.url, { log, connectionsMax: 2 })
    for (const name of OWN)
      stores.set(name, openStore(database.url, { log, connectionsMax: 1, role: `tokenmill_${name}` }))
  })
  afterAll(async () => {
    for (const store of stores.values()) await store.close()
    await owner?.close()
    await database?.drop()
  })
  beforeEach(() => owner.query({ text: 'delete from tokenmill.process' }))

  const as = (name: string): Store => stores.get(name) as Store
  const codeOf = (store: Store, text: string, values: unknown[] = []) =>
    store.query({ text, values }).then(
      () => 'done',
      error => (error as { code?: string }).code ?? String(error),
    )
  const rows = async () =>
    (
      await owner.query({
        text: `select role, host, keys, ended_at is not null as ended, seen_at = $1 as far
from tokenmill.process order by role, host`,
        values: [FAR],
      })
    ).rows
  const own = (role: (typeof OWN)[number], more: Partial<processes.NewProcess> = {}): processes.NewProcess => ({
    ...NONE,
    processId: randomUUID(),
    role,
    host: 'web',
    version: '1.0.0',
    connections: 3,
    ...more,
  })
  const addWorker = async () => {
    const worker = { ...NONE, processId: randomUUID(), role: 'bulk', host: 'vault', version: '1.0.0' } as const
    await processes.see(owner, { ...worker, connections: 3, kinds: ['token-batch'], keys: ['seal/1'] })
    return worker.processId
  }

  it.each(OWN)('%s writes no row by itself, whatever the row says', async name => {
    const worker = await addWorker()
    const before = await rows()
    for (const role of ['interactive', 'bulk', 'three-ds', 'scheduler', 'gateway', 'console'])
      for (const text of [
        `insert into tokenmill.process (process_id, role, host, version, connections) values (gen_random_uuid(), '${role}', 'h', '1', 1)`,
        `insert into tokenmill.process (process_id, role, host, version, connections, seen_at) values (gen_random_uuid(), '${role}', 'h', '1', 1, '${FAR}')`,
        `insert into tokenmill.process (process_id, role, host, version, connections, keys) values (gen_random_uuid(), '${role}', 'h', '1', 1, '{seal/1}')`,
      ])
        expect([text, await codeOf(as(name), text)]).toEqual([text, DENIED])
    for (const text of [
      `update tokenmill.process set seen_at = '${FAR}'`,
      `update tokenmill.process set ended_at = now() where process_id = '${worker}'`,
      `update tokenmill.process set keys = '{}'`,
      'delete from tokenmill.process',
      `select tokenmill.see_process('bulk', gen_random_uuid(), 'h', '1', 1, '{}')`,
    ])
      expect([text, await codeOf(as(name), text)]).toEqual([text, DENIED])
    expect(await rows()).toEqual(before)
  })

  it.each(OWN)('%s says that its process lives and that it ends, by a function', async name => {
    const process = own(name)
    await processes.see(as(name), process)
    await processes.see(as(name), process)
    expect(await rows()).toEqual([{ role: name, host: 'web', keys: [], ended: false, far: false }])
    await processes.leave(as(name), process)
    expect(await rows()).toMatchObject([{ ended: true }])
  })

  it.each(OWN)('%s renews and ends no process of another role', async name => {
    const other = OWN.find(one => one !== name) as (typeof OWN)[number]
    const theirs = own(other, { host: 'other' })
    await processes.see(as(other), theirs)
    const processIds = [await addWorker(), theirs.processId]
    const before = await rows()
    for (const processId of processIds) {
      const said = processes.see(as(name), own(name, { processId, keys: ['api-key/9'] }))
      await expect(said).rejects.toMatchObject({ code: DENIED })
      await processes.leave(as(name), { processId, role: name })
    }
    expect(await codeOf(as(name), `select tokenmill.see_${other}(gen_random_uuid(), 'h', '1', 1)`)).not.toBe('done')
    expect(await codeOf(as(name), `select tokenmill.leave_${other}($1)`, [theirs.processId])).toBe(DENIED)
    expect(await rows()).toEqual(before)
  })

  it('gateway takes over no row that a worker writes again', async () => {
    const worker = { ...NONE, processId: randomUUID(), role: 'bulk', host: 'vault', version: '1.0.0' } as const
    await processes.see(as('gateway'), own('gateway', { processId: worker.processId }))
    await processes.see(owner, { ...worker, connections: 3, kinds: ['token-batch'], keys: ['seal/1'] })
    expect(await processes.listWorkers(owner, 60_000)).toHaveLength(1)
    expect(await rows()).toEqual([{ role: 'bulk', host: 'vault', keys: ['seal/1'], ended: false, far: false }])
  })

  it('gateway names versions of the keys that gateways may know, and console names none', async () => {
    const keys = [...PURPOSES.map(purpose => `${purpose}/1`), 'kek-00', 'api-key/x', 'intake/1 ', 'api-key/12']
    await processes.see(as('gateway'), own('gateway', { keys }))
    await processes.see(as('console'), own('console', { keys }))
    const shared: string[] = [...SHARED_PURPOSES.map(purpose => `${purpose}/1`), 'api-key/12']
    const [console, gateway] = (await rows()) as { keys: string[] }[]
    expect([...(gateway?.keys ?? [])].sort()).toEqual(shared.sort())
    expect(console?.keys).toEqual([])
  })

  it('gateway makes nobody wait for a key that no gateway knows', async () => {
    const gateway = own('gateway')
    await processes.see(as('gateway'), gateway)
    await processes.see(as('console'), own('console'))
    for (const purpose of PURPOSES) {
      expect(await listLacking(owner, purpose, 2)).toEqual([])
      const waits = await listLackingGateways(owner, { purpose, version: 2 })
      const isShared = SHARED_PURPOSES.some(name => name === purpose)
      expect([purpose, waits.map(({ processId }) => processId)]).toEqual([purpose, isShared ? [gateway.processId] : []])
    }
    expect(await processes.listVault(owner, 60_000)).toEqual([])
    expect(await processes.listWorkers(owner, 60_000)).toEqual([])
    expect(await processes.findWorkMs(owner, 60_000)).toBeNull()
  })

  it('gateway is waited for by each of its processes, or by none', async () => {
    const [a, b] = [own('gateway', { host: 'a' }), own('gateway', { host: 'b' })]
    for (const one of [a, b]) await processes.see(as('gateway'), one)
    const waits = async (without?: Parameters<typeof listLackingGateways>[2]) =>
      (await listLackingGateways(owner, { purpose: 'api-key', version: 2 }, without)).map(({ host }) => host)
    expect(await waits()).toEqual(['a', 'b'])
    expect(await waits([a.processId])).toEqual(['b'])
    expect(await waits([b.processId, a.processId])).toEqual([])
    expect(await waits([randomUUID()])).toEqual(['a', 'b'])
    expect(await waits('all')).toEqual([])
    await processes.see(as('gateway'), { ...b, keys: ['api-key/2'] })
    expect(await waits()).toEqual(['a'])
  })

  it.each(OWN)('%s fills no table', async name => {
    const worker = await addWorker()
    const keys = name === 'gateway' ? `, '{api-key/1}'` : ''
    const flood = `select tokenmill.see_${name}(gen_random_uuid(), 'flood', '1', 1${keys}) from generate_series(1, 250)`
    const process = own(name)
    await processes.see(as(name), process)
    expect(await codeOf(as(name), flood)).toBe('done')
    // A process that lives is there again with its next heartbeat.
    await processes.see(as(name), process)
    const all = (await rows()) as { role: string; host: string }[]
    expect(all.filter(({ role }) => role === name)).toHaveLength(200)
    expect(all.filter(({ host }) => host === 'web')).toHaveLength(1)
    expect((await processes.list(owner)).some(({ processId }) => processId === worker)).toBe(true)
    const long = 'x'.repeat(256)
    for (const said of [
      own(name, { host: long }),
      own(name, { version: long }),
      own(name, { connections: 10_001 }),
      own(name, { connections: -1 }),
      own(name, { host: null as unknown as string }),
    ])
      await expect(processes.see(as(name), said)).rejects.toThrow()
  })

  it('gateway names only so many keys', async () => {
    const keys = Array.from({ length: 1_001 }, (_, at) => `api-key/${at + 1}`)
    await expect(processes.see(as('gateway'), own('gateway', { keys }))).rejects.toThrow()
  })
})
