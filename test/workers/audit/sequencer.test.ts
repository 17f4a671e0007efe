// The sequencer of the audit: kills between its steps, two sequencers at once, late commits, and a place that is away
// for a while.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeInstallationKey, openInstallationKey, watchSigning } from '../../../cli/open/installation-key.ts'
import { beginRotation } from '../../../src/acts/key/key-rotation.ts'
import { announceKey } from '../../../src/acts/key/signing-key.ts'
import { handOutTotalKey } from '../../../src/acts/manifest.ts'
import { type AuditPlace, openAuditPlace } from '../../../src/audit/place.ts'
import { verifyAudit } from '../../../src/audit/verify.ts'
import * as auditChain from '../../../src/store/access/audit-chain.ts'
import * as audits from '../../../src/store/access/audits.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import * as seenProof from '../../../src/store/console/audit/proof.ts'
import { importPublicJwk } from '../../../src/vault/client-key.ts'
import { pruneRows, type SequencerDeps, startSequencer } from '../../../workers/audit/sequencer.ts'
import { cli } from '../../cli/command-bench.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { startScript } from '../../support/process.ts'
import { until } from '../../support/until.ts'

const DAY_MS = 86_400_000

describe('the sequencer of the audit', () => {
  let database: FreshDatabase
  let installation: Installation
  let folder: string
  let deps: Omit<SequencerDeps, 'place' | 'log'>
  let auditUrl: string
  beforeAll(async () => {
    database = await freshDatabase()
    folder = await mkdtemp(join(tmpdir(), 'tokenmill-audit-'))
    auditUrl = pathToFileURL(join(folder, 'outside')).href
    installation = await openInstallation(
      { name: 'postgres', prefix: '{sequencer}', redisUrls: undefined, databaseUrl: database.url },
      { AUDIT_URL: auditUrl },
    )
    const { vault } = installation
    const key = await openInstallationKey(vault.store, vault.halves)
    deps = { ...vault, signing: () => ({ key }) }
  })
  afterAll(async () => {
    await installation?.close()
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  const add = (subject = 'a subject') => audits.insert(deps.store, { actor: 'test', action: 'test.act', subject })
  const openPlace = (url = auditUrl) => openAuditPlace({ auditUrl: url, dataDir: folder, endpoint: undefined })
  const start = (place: AuditPlace = openPlace()) =>
    startSequencer({ ...deps, place, log: installation.session.log }, { lookMs: 20 })
  const endLease = () => deps.store.query({ text: 'update tokenmill.audit_chain set held_until = now()' })
  const countUnnumbered = async () => (await audits.listUnnumbered(deps.store, 1_000)).length
  /** Waits until every present row was sent. */
  async function settled(): Promise<void> {
    await auditChain.want(deps.store)
    await until(async () => {
      const { wanted, unsentFrom } = await auditChain.find(deps.store)
      return !wanted && unsentFrom === null && (await countUnnumbered()) === 0
    })
  }
  const verify = async () => {
    const said = await cli(['audit', 'verify', '--json'], { env: installation.env })
    return { status: said.status, ...said.json<{ rows: number; segments: number; findings: unknown[] }>() }
  }

  /** Verifies as if 401 days had passed: before that no row may be removed. */
  async function verifyLater() {
    const found = await signingKeys.findPublic(deps.store)
    const keys = new Map(
      found.map(({ kid, alg, publicJwk }) => [kid, { alg, publicKey: importPublicJwk(publicJwk).key }] as const),
    )
    const { ring } = installation.vault
    return verifyAudit(deps.store, {
      ring,
      keys,
      place: openPlace(),
      isComplete: true,
      now: Date.now() + 401 * DAY_MS,
    })
  }

  it('that is killed between its steps leaves what the next one completes, once', async () => {
    for (const moment of ['numbering', 'before-put', 'after-put']) {
      await add()
      await auditChain.want(deps.store)
      await endLease()
      const dying = startScript('test/support/scripts/dying-sequencer.ts', [], {
        env: { ...installation.env, DIE_AT: moment },
      })
      expect(await dying.exit).toMatchObject({ signal: 'SIGKILL' })
    }
    await endLease()
    const stop = start()
    await settled()
    await stop()
    const sound = await verify()
    expect(sound).toMatchObject({ status: 0, findings: [] })
    expect((await openPlace().list()).size).toBe(sound.segments)
    const told = await deps.store.query({ text: 'select place, is_outside as "isOutside" from tokenmill.audit_chain' })
    const { name, isOutside } = openPlace()
    expect(told.rows).toEqual([{ place: name, isOutside }])
    const seen = (change: string) =>
      deps.store.transaction(async db => {
        await db.query({ text: `update tokenmill.audit_chain set ${change}` })
        const chain = await seenProof.findChain({ sees: 'all' }, db)
        await db.query({ text: `update tokenmill.audit_chain set segment = $1, unsent_from = null`, values: [segment] })
        return chain && { place: chain.place, isOutside: chain.isOutside }
      })
    const { segment } = await auditChain.find(deps.store)
    expect(await seen('unsent_from = null')).toEqual({ place: name, isOutside })
    expect(await seen('segment = segment + 1, unsent_from = cut_seq')).toEqual({ place: name, isOutside })
  })

  it('numbers each row once though two run at once, and one commits late', async () => {
    await endLease()
    const stops = [start(), start()]
    let commit = () => {}
    const late = deps.store.transaction(async db => {
      await audits.insert(db, { actor: 'test', action: 'test.late', subject: 'late' })
      await new Promise<void>(resolve => {
        commit = resolve
      })
    })
    await Promise.all(Array.from({ length: 50 }, () => add()))
    await until(async () => (await countUnnumbered()) === 0)
    commit()
    await late
    await settled()
    await Promise.all(stops.map(stop => stop()))
    const { rows } = await deps.store.query<{ rows: number; numbers: number; last: number; late: number }>({
      text: `select count(*) as rows, count(distinct seq) as numbers, max(seq) as last,
(select max(seq) from tokenmill.audit where action = 'test.late') as late from tokenmill.audit`,
    })
    expect(rows[0]).toMatchObject({ rows: rows[0]?.last, numbers: rows[0]?.last, late: rows[0]?.last })
    expect(await verify()).toMatchObject({ status: 0, findings: [] })
  })

  it('does not keep a worker from starting while its place is away and an announced key is due', async () => {
    const { vault, session } = installation
    const by = { actor: { kind: 'machine', id: 'tester@here' } as const, reason: undefined }
    const made = await makeInstallationKey(vault.halves)
    const announced = await announceKey(vault, { ...made, statement: 'a statement', activeAt: Date.now() }, by)
    expect(announced).toMatchObject({ done: {} })
    await deps.store.query({ text: `update tokenmill.audit_chain set away_since = now() - interval '16 minutes'` })
    const begins = 'alter table tokenmill.audit add constraint no_begin'
    await deps.store.query({ text: `${begins} check (action <> 'signing-key.begin') not valid` })
    const former = deps.signing().key.kid
    const first = await watchSigning(session, vault)
    expect(first().key.kid).toBe(former)
    await deps.store.query({ text: 'alter table tokenmill.audit drop constraint no_begin' })
    const second = await watchSigning(session, vault)
    expect(second().key.kid).toBe(made.kid)
  })

  it('forgets that a place was away once the settings name none', async () => {
    await deps.store.query({ text: `update tokenmill.audit_chain set away_since = now() - interval '16 minutes'` })
    const stop = start({ ...openPlace(), isOutside: false })
    // A shorter time than the minute after which the next segment would be cut.
    await until(async () => (await auditChain.find(deps.store)).awayMs === null, { ms: 40_000 })
    await stop()
  })

  it('sends what waited when the place comes back; meanwhile acts on keys and exports are refused after a while', async () => {
    const file = join(folder, 'file')
    await writeFile(file, '')
    const stop = start(openPlace(pathToFileURL(join(file, 'away')).href))
    await add('while away')
    await auditChain.want(deps.store)
    await until(async () => (await auditChain.find(deps.store)).awayMs !== null)
    await deps.store.query({ text: `update tokenmill.audit_chain set away_since = now() - interval '14 minutes'` })
    const made = { sealed: Buffer.alloc(48), keyVersion: 1 }
    const by = { actor: { kind: 'machine', id: 'tester@here' } as const, reason: undefined }
    const act = (migration: string) => handOutTotalKey(deps.store, { migration, made, to: 'x' }, by)
    expect(await act('early')).toMatchObject({ done: {} })
    await deps.store.query({ text: `update tokenmill.audit_chain set away_since = now() - interval '16 minutes'` })
    await expect(act('late')).rejects.toThrow('AUDIT_URL: the place of the audit has taken no rows for 16 minutes')
    const keys = { ...installation.vault, store: deps.store }
    await expect(beginRotation(keys, 'webhook', by)).rejects.toThrow('AUDIT_URL: ')
    // A worker's automatic rotation isn't refused: without a new version a full key would soon refuse to seal.
    expect(await beginRotation(keys, 'webhook', { ...by, isAutomatic: true })).toMatchObject({ version: 2 })
    const exported = await cli(['references', 'export', '--scope', installation.scope], { env: installation.env })
    expect(exported).toMatchObject({ status: 78, stdout: '', stderr: expect.stringContaining('exports are refused') })
    const { rows } = await deps.store.query({
      text: `select action, subject, outcome from tokenmill.audit where outcome = 'refused' order by audit_id`,
    })
    expect(rows).toEqual([
      { action: 'manifest.key.hand-out', subject: 'late', outcome: 'refused' },
      { action: 'data-key.rotate', subject: 'webhook', outcome: 'refused' },
      { action: 'references.export', subject: installation.scope, outcome: 'refused' },
    ])
    const doctor = await cli(['doctor', '--json'], { env: installation.env })
    expect(doctor.stdout).toContain('the place of the audit has taken nothing for 16 min: acts on keys')
    await stop()
    const again = start()
    await settled()
    // An export goes on as soon as its row was sent.
    const scope = ['--scope', installation.scope]
    expect(await cli(['references', 'export', ...scope], { env: installation.env })).toMatchObject({ status: 0 })
    await again()
    expect(await verify()).toMatchObject({ status: 0, findings: [] })
  })

  it('leaves rows that are old and outside to retention, and says so', async () => {
    // The verdict that was written last has no number yet.
    const first = start()
    await settled()
    await first()
    const { seq } = await auditChain.find(deps.store)
    expect(await pruneRows(deps, Date.now() - 400 * DAY_MS)).toEqual({ rows: 0 })
    const kept = await add('kept')
    expect(await pruneRows(deps, Date.now() + 1_000)).toEqual({ rows: seq })
    // The row about the removal has no number yet.
    expect(await verifyLater()).toMatchObject({ findings: [] })
    const stop = start()
    await settled()
    await stop()
    expect(await audits.findNumber(deps.store, kept)).toBe(seq + 1)
    expect(await verifyLater()).toMatchObject({ findings: [], rows: 2 })
    expect(await verify()).toMatchObject({ status: 1 })
  })
})
