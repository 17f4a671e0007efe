// What the database's owner can change in the audit, and what a verification finds. Each change is rolled back, so that
// the next test begins with an unchanged audit.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openInstallationKey } from '../../cli/open/installation-key.ts'
import type { Finding } from '../../src/audit/finding.ts'
import { type AuditPlace, openAuditPlace } from '../../src/audit/place.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import type { InstallationKeys } from '../../src/job/envelope/installation-jws.ts'
import * as auditChain from '../../src/store/access/audit-chain.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import type { Db } from '../../src/store/pool.ts'
import { importPublicJwk } from '../../src/vault/client-key.ts'
import { type ChainDeps, extendChain } from '../../workers/audit/chain.ts'
import { pruneRows, sendSegment } from '../../workers/audit/sequencer.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { turnKey } from '../workers/reseal/turn-key.ts'

const DAY_MS = 86_400_000

class RollBack extends Error {}

describe('the owner of the database', () => {
  let database: FreshDatabase
  let installation: Installation
  let folder: string
  let place: AuditPlace
  let deps: ChainDeps
  let keys: InstallationKeys
  /** The numbers of six rows: three that were sent, and three that weren't. */
  let rows: number[]
  beforeAll(async () => {
    database = await freshDatabase()
    installation = await openInstallation({
      name: 'postgres',
      prefix: '{audit}',
      redisUrls: undefined,
      databaseUrl: database.url,
    })
    folder = await mkdtemp(join(tmpdir(), 'tokenmill-audit-'))
    const { vault } = installation
    place = openAuditPlace({ auditUrl: pathToFileURL(folder).href, dataDir: folder, endpoint: undefined })
    const key = await openInstallationKey(vault.store, vault.halves)
    deps = { ...vault, signing: () => ({ key }) }
    keys = new Map(
      (await signingKeys.findPublic(vault.store)).map(
        ({ kid, alg, publicJwk }) => [kid, { alg, publicKey: importPublicJwk(publicJwk).key }] as const,
      ),
    )
    // The database may be a copy that was made minutes ago: then a segment would be due by its time.
    await deps.store.query({ text: 'update tokenmill.audit_chain set cut_at = now()' })
    await addSix()
  })
  afterAll(async () => {
    place?.close()
    await installation?.close()
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  async function add(count: number, db: Db = deps.store): Promise<number[]> {
    for (let n = 0; n < count; n += 1)
      await audits.insert(db, { actor: 'test', action: 'test.act', subject: `subject ${n}`, detail: { n } })
    const { head } = await extendChain(deps, undefined)
    return Array.from({ length: count }, (_, index) => head.seq - count + 1 + index)
  }
  async function addSix(): Promise<void> {
    await add(3)
    await segment()
    // The rows have MACs of two versions of the key.
    await turnKey(installation.vault, 'audit')
    await installation.vault.ring.refresh()
    const [fourth = 0] = await add(3)
    rows = Array.from({ length: 6 }, (_, index) => fourth - 3 + index)
  }
  /** Sends all rows, if need be in several segments. */
  async function segment(): Promise<void> {
    await auditChain.want(deps.store)
    for (let isDue = true; isDue; ) {
      await extendChain(deps, undefined)
      await sendSegment({ ...deps, place })
      const { wanted, unsentFrom } = await auditChain.find(deps.store)
      isDue = wanted || unsentFrom !== null
    }
  }
  const sources = (now = Date.now()) => ({ ring: installation.vault.ring, place, keys, isComplete: true, now })
  const verify = async (db: Db, now?: number) => (await verifyAudit(db, sources(now))).findings
  /** Does the changes, verifies, and rolls back. `number`: the sequencer numbers rows in between. */
  async function afterDeeds(...deeds: string[]): Promise<Finding[]> {
    let findings: Finding[] = []
    const before: Record<string, number> = { 'prune old rows': Date.now() - 400 * DAY_MS, 'prune rows': Date.now() + 1 }
    await deps.store
      .transaction(async db => {
        const within = { ...deps, store: { ...deps.store, transaction: <T>(work: (db: Db) => Promise<T>) => work(db) } }
        for (const deed of deeds) {
          const limit = before[deed]
          if (deed === 'number') await extendChain(within, undefined)
          else if (limit !== undefined) await pruneRows({ ...within, ring: installation.vault.ring }, limit)
          else await db.query({ text: deed.replace(/\$(\d)/g, (_, n) => String(rows[Number(n) - 1])) })
        }
        findings = await verify(db)
        throw new RollBack()
      })
      .catch(error => {
        if (!(error instanceof RollBack)) throw error
      })
    return findings
  }
  const named = (findings: readonly Finding[]) =>
    findings.map(one => [one.found, 'seq' in one ? rows.indexOf(one.seq) + 1 : undefined])

  it('has a sound audit to begin with, under two versions of its key', async () => {
    const { rows: versions } = await deps.store.query({
      text: 'select distinct key_version as version from tokenmill.audit where seq is not null order by 1',
    })
    expect(versions).toEqual([{ version: 1 }, { version: 2 }])
    expect(await verify(deps.store)).toEqual([])
    expect((await verifyAudit(deps.store, sources())).segments).toBe(1)
  })

  it('is not accused of rows and segments that come, or that retention removes, while they are compared', async () => {
    const grow = async () => {
      await add(1)
      await segment()
    }
    const list = async () => {
      await grow()
      const names = await place.list()
      await grow()
      return names
    }
    expect((await verifyAudit(deps.store, { ...sources(), place: { ...place, list } })).findings).toEqual([])
    await addSix()
  })

  it('is found to have changed a row, outside or not', async () => {
    for (const row of [2, 5])
      for (const change of [
        `actor = 'nobody'`,
        `at = at + interval '1 microsecond'`,
        `outcome = 'refused'`,
        `detail = '{}'`,
        `host = null`,
        `audit_id = default`,
        `key_version = 9`,
      ])
        expect(named(await afterDeeds(`update tokenmill.audit set ${change} where seq = $${row}`))).toEqual([
          ['changed', row],
        ])
  })

  it('is found to have changed a row and its hash', async () => {
    const deed = "update tokenmill.audit set actor = 'nobody', hash = sha256(hash) where seq = $2"
    // The hash of the next row doesn't fit the changed hash, either.
    expect(named(await afterDeeds(deed))).toEqual([
      ['changed', 2],
      ['changed', 3],
    ])
  })

  it('is found to have removed rows, from the midst or the end', async () => {
    for (const row of [2, 5, 6])
      expect(named(await afterDeeds(`delete from tokenmill.audit where seq = $${row}`))).toEqual([['removed', row]])
    const tail = await afterDeeds('delete from tokenmill.audit where seq >= $5')
    expect(tail).toMatchObject([{ found: 'removed', seq: rows[4], to: rows[5] }])
  })

  it('is found to have moved the head back behind what is outside', async () => {
    const deeds = [
      'delete from tokenmill.audit where seq >= $3',
      'update tokenmill.audit_chain set cut_seq = $2, seq = $2, hash = (select hash from tokenmill.audit where seq = $2)',
    ]
    const findings = await afterDeeds(...deeds)
    expect(named(findings)).toEqual([
      ['removed', 3],
      ['went-back', undefined],
    ])
  })

  it('is found to have put a row between others, or behind them', async () => {
    const row = "(actor, action, subject, seq, hash, mac, key_version) select 'a', 'b', 'c',"
    const between = await afterDeeds(
      'update tokenmill.audit set seq = seq + 1000 where seq >= $5',
      `insert into tokenmill.audit ${row} $5, hash, mac, key_version from tokenmill.audit where seq = $4`,
      'update tokenmill.audit set seq = seq - 999 where seq > 1000',
      'update tokenmill.audit_chain set seq = seq + 1',
    )
    expect(named(between).slice(0, 2)).toEqual([
      ['changed', 5],
      ['changed', 6],
    ])
    const behind = await afterDeeds(
      `insert into tokenmill.audit ${row} $6 + 1, hash, mac, key_version from tokenmill.audit where seq = $6`,
    )
    expect(behind).toMatchObject([{ found: 'added', seq: (rows[5] ?? 0) + 1 }])
  })

  it('is found to have swapped two rows', async () => {
    const fields = 'audit_id, at, actor, action, subject, detail, host, outcome'
    const from = (row: number, other: number) =>
      `update tokenmill.audit as a set (${fields}) = (select ${fields
        .split(', ')
        .map(field => (field === 'audit_id' ? '-audit_id' : field))
        .join(', ')} from old as o where o.seq = $${other}) where a.seq = $${row}`
    const overriding = 'alter table tokenmill.audit alter column audit_id set generated by default'
    const findings = await afterDeeds(
      overriding,
      'create temp table old on commit drop as select * from tokenmill.audit',
      from(2, 5),
      from(5, 2),
      'update tokenmill.audit set audit_id = -audit_id where audit_id < 0',
    )
    expect(findings).toMatchObject([{ found: 'swapped', seq: rows[1], with: rows[4] }])
  })

  it('is found to have swapped the numbers of two rows, neighbours or not', async () => {
    for (const [one, other] of [
      [2, 5],
      [4, 5],
      [2, 3],
    ] as const) {
      const findings = await afterDeeds(
        `update tokenmill.audit set seq = 1000000 where seq = $${one}`,
        `update tokenmill.audit set seq = $${one} where seq = $${other}`,
        `update tokenmill.audit set seq = $${other} where seq = 1000000`,
      )
      expect(findings).toMatchObject([{ found: 'swapped', seq: rows[one - 1], with: rows[other - 1] }])
    }
  })

  it('is found to have emptied the table', async () => {
    const findings = await afterDeeds('truncate tokenmill.audit')
    expect(findings).toMatchObject([{ found: 'removed', seq: 1, to: rows[5] }])
    const both = await afterDeeds(
      'truncate tokenmill.audit',
      'truncate tokenmill.audit_chain',
      'insert into tokenmill.audit_chain default values',
    )
    expect(both[0]).toMatchObject({ found: 'removed', seq: 1 })
    expect(both.at(-1)).toMatchObject({ found: 'went-back' })
  })

  it('is found to have removed rows as if retention had done it', async () => {
    const detail = `jsonb_build_object('to', $2, 'hash', encode(hash, 'hex'), 'mac', encode(mac, 'hex'), 'key_version', 1)`
    const findings = await afterDeeds(
      `insert into tokenmill.audit (actor, action, subject, detail) select 'retention', 'audit.prune', '$2', ${detail} from tokenmill.audit where seq = $2`,
      'number',
      'delete from tokenmill.audit where seq <= $2',
    )
    expect(findings).toMatchObject([{ found: 'removed', seq: 1, to: rows[1] }])
  })

  it('gets no row removed by retention that was made to look old', async () => {
    const findings = await afterDeeds(`update tokenmill.audit set at = '2000-01-01' where seq <= $2`, 'prune old rows')
    expect(findings.map(({ found }) => found)).toEqual(Array.from({ length: rows[1] ?? 0 }, () => 'changed'))
  })

  it('is found to have had rows removed before their time', async () => {
    const findings = await afterDeeds('prune rows')
    expect(findings.length).toBeGreaterThan(0)
    expect(findings.every(({ found }) => found === 'removed')).toBe(true)
  })

  it('is found to have moved the head on, however far', async () => {
    const findings = await afterDeeds('update tokenmill.audit_chain set seq = seq + 100000000')
    const last = rows[5] ?? 0
    expect(findings).toMatchObject([{ found: 'removed', seq: last + 1, to: last + 100_000_000 }])
    // The worker that numbers the next row finds it, too, also a worker that has just started.
    for (const deed of ['seq = seq + 100', 'hash = sha256(hash)']) {
      const noticed = await afterDeeds(`update tokenmill.audit_chain set ${deed}`, 'number')
      expect(noticed.map(({ says }) => says).join()).toMatch(/row \d+ says: the head of the audit was moved/)
    }
  })

  it('is noticed by the worker that numbered what was cut off, though another process went on from there', async () => {
    const { seq, hash } = await auditChain.find(deps.store)
    let moved: string | undefined
    await deps.store
      .transaction(async db => {
        const within = { ...deps, store: { ...deps.store, transaction: <T>(work: (db: Db) => Promise<T>) => work(db) } }
        await db.query({ text: 'delete from tokenmill.audit where seq >= $1', values: [rows[4]] })
        await db.query({
          text: 'update tokenmill.audit_chain set seq = $1, hash = (select hash from tokenmill.audit where seq = $1)',
          values: [rows[3]],
        })
        for (let n = 0; n < 3; n += 1)
          await audits.insert(db, { actor: 'test', action: 'test.act', subject: `subject ${n}` })
        expect((await extendChain(within, undefined)).head.seq).toBeGreaterThan(seq)
        ;({ moved } = await extendChain(within, { seq, hash }))
        throw new RollBack()
      })
      .catch(error => {
        if (!(error instanceof RollBack)) throw error
      })
    expect(moved).toBe('audit.went-back')
  })

  it('is found to have put back an old copy of the table, also after acts went on', async () => {
    const { rows: old } = await deps.store.query<{ chain: string }>({
      text: 'select to_jsonb(c)::text as chain from tokenmill.audit_chain as c',
    })
    await segment()
    await add(2)
    expect(await verify(deps.store)).toEqual([])
    const putBack = [
      'delete from tokenmill.audit where seq > $6',
      'delete from tokenmill.audit_chain',
      `insert into tokenmill.audit_chain select * from jsonb_populate_record(null::tokenmill.audit_chain, '${old[0]?.chain}')`,
    ]
    expect(named(await afterDeeds(...putBack))).toEqual([['went-back', undefined]])
    // The old copy is put back for good, and the chain goes on from it.
    for (const deed of putBack) await deps.store.query({ text: deed.replace('$6', String(rows[5])) })
    await add(4)
    await segment()
    const findings = await verify(deps.store)
    expect(findings.map(({ says }) => says).join()).toContain('there are 2: the store went back to an older copy')
  })
})
