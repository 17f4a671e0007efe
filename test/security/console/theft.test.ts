// Somebody has everything that the host of the console holds: the database user that `schema login console` makes, the key that
// signs acts, and the queues. Nothing is done with it: no act, no person, no role, no invite.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newSecret } from '../../../src/acts/person.ts'
import { ACTS, type Act } from '../../../src/job/system/act.ts'
import type { Batch } from '../../../src/store/batch/batch-row.ts'
import { openSnapshots } from '../../producers/console/routes/snapshot.ts'
import { runCommand } from '../../support/command.ts'
import { describeOnRedis } from '../../support/engines.ts'
import type { Installation } from '../../support/installation.ts'
import { openAuthenticator } from '../../vault/passkey/authenticator.ts'
import { type ActBench, type Member, openActBench, openActInstallation, SITE } from '../../workers/act/bench.ts'

/** What the console writes: who has signed in, what waits for a touch, and its heartbeat. */
const OWN = ['challenge', 'openid_flow', 'pending_act', 'session']
const HEARTBEAT = 'process'
/** What says who may do what, and what acts are done to. */
const RIGHTS = [
  'batch',
  'client',
  'client_key',
  'display',
  'invite',
  'person',
  'person_credential',
  'person_identity',
  'schedule',
]

describeOnRedis('whoever has the host of the console', engine => {
  let installation: Installation
  let bench: ActBench
  let admin: Member
  let viewer: Member
  let batch: Batch
  let login: pg.Client
  const query = async <R>(text: string) => (await installation.vault.store.query<R & object>({ text })).rows
  const rights = async () => {
    const all = await openSnapshots({ rows: query } as never)()
    return RIGHTS.map(table => `${table} ${all[`tokenmill.${table}`]}`)
  }
  /** The code of the database's refusal, or `done`. Nothing of it stays. */
  const attempt = async (text: string): Promise<string> => {
    await login.query('begin')
    try {
      await login.query(text)
      return 'done'
    } catch (error) {
      return (error as { code?: string }).code ?? 'no code'
    } finally {
      await login.query('rollback')
    }
  }

  beforeAll(async () => {
    installation = await openActInstallation(engine)
    bench = await openActBench(installation)
    admin = await bench.join('Ada', ['ADMIN'])
    viewer = await bench.join('Vera', ['VIEWER'])
    batch = await bench.batch()
    const out = join(installation.dataDir, 'console.env')
    const made = await runCommand(['schema', 'login', 'console', '--out', out], { env: installation.env })
    expect(made.code, made.stderr).toBe(0)
    const { DATABASE_URL, TOKENMILL_CONSOLE_DATABASE_URL = DATABASE_URL } = parseEnv(await readFile(out, 'utf8'))
    login = new pg.Client({ connectionString: TOKENMILL_CONSOLE_DATABASE_URL ?? '' })
    await login.connect()
  })
  afterAll(async () => {
    await login?.end()
    await bench?.close()
    await installation?.close()
  })

  it('writes nothing in the database but sessions, and what waits for a touch', async () => {
    const tables = await query<{ name: string; column: string }>(
      `select c.relname as name, (select attname from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped and attidentity = '' and attgenerated = '' order by attnum limit 1) as column
from pg_class as c where relnamespace = 'tokenmill'::regnamespace and relkind in ('r', 'p') order by 1`,
    )
    expect(tables.length).toBeGreaterThan(50)
    const may: string[] = []
    for (const { name, column } of tables)
      for (const [act, text] of [
        ['insert', `insert into tokenmill.${name} default values`],
        ['update', `update tokenmill.${name} set ${column} = ${column} where false`],
        ['delete', `delete from tokenmill.${name} where false`],
        ['truncate', `truncate tokenmill.${name}`],
      ] as const)
        if ((await attempt(text)) !== '42501') may.push(`${act} ${name}`)
    expect(may.filter(one => !OWN.some(table => one.endsWith(` ${table}`)) && !one.endsWith(` ${HEARTBEAT}`))).toEqual(
      [],
    )
  })

  it('becomes nobody there who may', async () => {
    const { username } = new URL(engine.databaseUrl)
    const roles = await query<{ name: string }>(
      `select rolname as name from pg_roles where rolname like 'tokenmill\\_%' and rolname !~ '^tokenmill_console'`,
    )
    expect(roles.length).toBeGreaterThan(3)
    for (const name of [username, ...roles.map(role => role.name)])
      expect([name, await attempt(`set role "${name}"`)]).toEqual([name, '42501'])
    const { personId } = admin
    for (const text of [
      `update tokenmill.person set roles = '{ADMIN}'`,
      `insert into tokenmill.person (person_id, name, roles) values (gen_random_uuid(), 'thief', '{ADMIN}')`,
      `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count) values ('x', '${personId}', '{}', 'ES256', 'x', 0)`,
      `insert into tokenmill.person_identity (identity_id, person_id, issuer, subject) values (gen_random_uuid(), '${personId}', 'i', 's')`,
      `insert into tokenmill.invite (invite_id, lookup_hash, public_key, name, roles, invited_by, expires_at) values (gen_random_uuid(), 'x', 'x', 'thief', '{ADMIN}', 'x', now())`,
      `update tokenmill.batch set paused_at = now()`,
      `create table tokenmill.mine (a int)`,
      `create function tokenmill.mine() returns int language sql as 'select 1'`,
      `alter table tokenmill.person disable trigger all`,
      `create role thief`,
    ])
      expect([text, await attempt(text)]).toEqual([text, '42501'])
  })

  it('has no act done: none without a touch, none again, none by another’s or by a made-up passkey', async () => {
    const spent = bench.touch(admin, await bench.about(admin, 'batch.note', batch))
    expect(await bench.send(spent)).toBe('DONE')
    const before = await rights()
    const stranger = openAuthenticator(SITE)
    const about = (odd = {}) => bench.about(admin, 'batch.cancel', batch, odd)
    const { nonce } = bench.on(admin, { act: 'batch.note', subject: batch.batchId, parameters: {}, seen: null })
    const open = bench.touch(admin, await about())
    // A passkey that counts refuses a former proof before its number is looked at.
    const tries: [string, Act, string][] = [
      ['a former proof', spent, 'passkey_counter'],
      ['a former proof under another number', { ...spent, nonce }, 'passkey_challenge'],
      ['a former proof for another act', { ...(await about()), proof: spent.proof }, 'passkey_challenge'],
      ['a touch for something else', { ...open, act: 'batch.pause' }, 'passkey_challenge'],
      ['a touch of another person', bench.touch(viewer, await about()), 'passkey_unknown'],
      ['a passkey of one’s own', bench.touch({ ...admin, authenticator: stranger }, await about()), 'passkey_unknown'],
      ['for nobody', bench.touch(admin, await about({ person_id: randomUUID() })), 'person_unknown'],
      ['no touch', { ...(await about()), proof: null }, 'passkey_missing'],
    ]
    for (const [what, request, said] of tries) expect([what, await bench.send(request)]).toEqual([what, said])
    expect(await rights()).toEqual(before)
  })

  it('makes no person, no role and no invite, by whatever act of people, and no way in', async () => {
    const before = await rights()
    const { key, secret } = newSecret()
    const link = { lookup_hash: key.lookupHash.toString('base64url'), public_key: key.publicKey.toString('base64url') }
    const rightsOf = { roles: ['ADMIN'], entities: null }
    const seen = 'A'.repeat(43)
    const stranger = openAuthenticator(SITE)
    const { personId } = viewer
    const made = { ...stranger.create(Buffer.alloc(32)) }
    const account = { issuer: 'https://login.example.com', subject: 'thief' }
    const asked = {
      'person.invite': { subject: 'thief', parameters: { ...rightsOf, ...link }, seen: null },
      'person.change': { subject: personId, parameters: rightsOf, seen },
      'person.link': { subject: personId, parameters: link, seen },
      'person.revoke': { subject: admin.personId, parameters: {}, seen },
      'invite.revoke': { subject: randomUUID(), parameters: {}, seen },
      'passkey.add': { subject: admin.personId, parameters: made, seen: null },
      'passkey.remove': {
        subject: admin.personId,
        parameters: { credential_id: admin.authenticator.credentialId },
        seen: null,
      },
      'identity.connect': { subject: admin.personId, parameters: account, seen: null },
      'identity.disconnect': { subject: admin.personId, parameters: account, seen: null },
    } as const
    const people = ACTS.filter(name => /^(person|passkey|identity|invite)\./.test(name) && name !== 'person.enrol')
    expect(Object.keys(asked).sort()).toEqual([...people].sort())
    for (const [act, of] of Object.entries(asked)) {
      const request = bench.on(admin, { act: act as Act['act'], ...of })
      expect([act, await bench.send({ ...request, proof: null })]).toEqual([act, 'passkey_missing'])
      const touched = bench.touch({ ...admin, authenticator: stranger }, request)
      expect([act, await bench.send(touched)]).toEqual([act, 'passkey_unknown'])
    }
    // An invite that is read in the store has no secret: a link of one's own doesn't open it.
    const { inviteId } = await bench.invite('ines', ['ADMIN'])
    const after = await rights()
    const enrol = bench.enrol(secret, stranger, bench.enrolment({ inviteId }, randomUUID()))
    expect(await bench.send(enrol)).toBe('invite_unknown')
    expect(await rights()).toEqual(after)
    expect(after.filter((one, at) => one !== before[at])).toEqual([expect.stringMatching(/^invite 3 /)])
  })
})
