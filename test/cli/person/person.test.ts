// `tokenmill person`: invites are printed once, and people are listed and revoked. And the same of `tokenmill display`.
import { hash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openVault, withSession } from '../../../cli/open/open.ts'
import { bindIdentity } from '../../../src/acts/identities.ts'
import { grantPasskey, grantPerson } from '../../../src/acts/person-grants.ts'
import { areAllElsewhere } from '../../../src/store/console/signing-in.ts'
import * as credentials from '../../../src/store/person/credentials.ts'
import * as persons from '../../../src/store/person/persons.ts'
import { hashOfLookup, lookupOf } from '../../../src/vault/passkey/invite-key.ts'
import { openAuthenticator } from '../../vault/passkey/authenticator.ts'
import { type Bench, openBench } from '../command-bench.ts'

const RP_ID = 'console.example.com'
const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'

describe('tokenmill person', () => {
  let bench: Bench
  beforeAll(async () => {
    bench = await openBench()
    expect(await bench.cli(['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek')])).toMatchObject({
      status: 0,
    })
  })
  afterAll(() => bench?.close())

  const secretOf = (link: string) => link.slice(link.indexOf('#') + 1)

  it('invite prints the link once, keeps no secret, and gives the first one an hour', async () => {
    const env = { TOKENMILL_CONSOLE_ORIGIN: 'https://console.example.com' }
    const said = await bench.cli(['person', 'invite', 'Ada', '--roles', 'ADMIN,VIEWER'], { env })
    expect(said.status, said.stderr).toBe(0)
    const link = said.stdout.trim()
    expect(link).toMatch(/^https:\/\/console\.example\.com\/welcome#[A-Za-z0-9_-]{43}$/)
    const hash = hashOfLookup(lookupOf(secretOf(link)))
    const [invite] = await bench.rows<{ seconds: number; used_at: null; mac: Buffer }>(
      `select extract(epoch from expires_at - created_at)::integer as seconds, used_at, mac from tokenmill.invite where lookup_hash = $1`,
      { values: [hash] },
    )
    expect(invite).toMatchObject({ used_at: null, mac: expect.any(Buffer) })
    expect(Math.abs((invite?.seconds ?? 0) - 3_600)).toBeLessThan(60)
    const rows = await bench.rows<{ text: string }>(
      `select string_agg(t::text, ' ') || (select string_agg(i::text, ' ') from tokenmill.invite as i) as text
from tokenmill.audit as t where action = 'person.invite'`,
    )
    expect(rows[0]?.text).toContain('Ada')
    for (const said of [
      secretOf(link),
      Buffer.from(secretOf(link), 'base64url').toString('hex'),
      lookupOf(secretOf(link)),
    ])
      expect(rows[0]?.text).not.toContain(said)
  })

  it('invite again ends the earlier invite', async () => {
    const words = ['person', 'invite', 'Vera', '--roles', 'VIEWER', '--entity', ENTITY, '--json']
    const [first, second] = [await bench.cli(words), await bench.cli(words)]
    expect(second.json()).toMatchObject({ name: 'Vera', roles: ['VIEWER'], entities: [ENTITY], person_id: null })
    const open = await bench.rows<{ id: string }>(
      `select invite_id as id from tokenmill.invite where name = 'Vera' and used_at is null`,
    )
    expect(open).toEqual([{ id: second.json()['invite_id'] }])
    expect(first.json()['link']).not.toBe(second.json()['link'])
  })

  it('invite refuses unknown roles, a card number as a name, the reserved name and a wrong origin', async () => {
    const invite = (name: string, roles = 'VIEWER', env = {}) =>
      bench.cli(['person', 'invite', name, '--roles', roles], { env })
    expect((await invite('Eve', 'ROOT')).status).toBe(64)
    expect((await invite('4111 1111 1111 1111')).status).toBe(64)
    expect((await invite('local')).status).toBe(1)
    expect((await invite('Eve', 'VIEWER', { TOKENMILL_CONSOLE_ORIGIN: 'http://console.example.com' })).status).toBe(78)
  })

  it('invite with an operator’s file is that operator’s act', async () => {
    const added = await bench.cli(['client', 'add', 'ops', '--entity', ENTITY, '--roles', 'ADMIN'])
    expect(added.status, added.stderr).toBe(0)
    const file = join(bench.dataDir, 'clients', 'ops', 'client.json')
    const words = ['person', 'invite', 'Otto', '--roles', 'OPERATOR', '--operator', file, '--reason', 'on call']
    const said = await bench.cli(words)
    expect(said.status, said.stderr).toBe(0)
    const [row] = await bench.rows<{ actor: string; invited_by: string; reason: string; signed: boolean }>(
      `select actor, detail->>'reason' as reason, detail ? 'proof' and not detail ? 'unchecked' as signed,
  (select invited_by from tokenmill.invite where name = 'Otto') from tokenmill.audit where subject = 'Otto'`,
    )
    expect(row).toEqual({
      actor: row?.invited_by,
      invited_by: expect.stringMatching(/^client:c/),
      reason: 'on call',
      signed: true,
    })
  })

  it('list and revoke know people by name and id', async () => {
    expect((await bench.cli(['person', 'revoke', 'Nobody'])).status).toBe(1)
    expect((await bench.cli(['person', 'list', '--json'])).json()).toEqual([])
  })

  it('revoke names the option by which the last administrator goes, and the domain for which nobody else has a passkey', async () => {
    const personId = await addAdmin('Ada')
    const env = { TOKENMILL_CONSOLE_ORIGIN: `https://${RP_ID}` }
    const kept = await bench.cli(['person', 'revoke', 'Ada'], { env })
    expect([kept.status, kept.stderr]).toEqual([1, expect.stringMatching(/console\.example\.com.*--last/)])
    const gone = await bench.cli(['person', 'revoke', 'Ada', '--last', '--json'], { env })
    expect(gone.status, gone.stderr).toBe(0)
    expect(gone.json()).toEqual({ person_id: personId, revoked: true, passkeys: 1, identities: 0, invites: 0 })
  })

  it('link gives a known person a new link with the same rights, and nobody else', async () => {
    const personId = await addAdmin('Lena', { roles: ['OPERATOR'], entities: [ENTITY] })
    const first = await bench.cli(['person', 'link', 'Lena', '--json'])
    expect(first.json()).toMatchObject({ name: 'Lena', roles: ['OPERATOR'], entities: [ENTITY], person_id: personId })
    const second = await bench.cli(['person', 'link', personId, '--reason', 'lost the phone'])
    expect(second.stdout).toMatch(/^http:\/\/localhost:8090\/welcome#[A-Za-z0-9_-]{43}\n$/)
    const open = await bench.rows<{ id: string }>(
      `select invite_id as id from tokenmill.invite where person_id = $1 and used_at is null`,
      { values: [personId] },
    )
    expect(open).toHaveLength(1)
    expect(open[0]?.id).not.toBe(first.json()['invite_id'])
    expect((await bench.cli(['person', 'link', 'Nobody'])).status).toBe(1)
    expect((await bench.cli(['person', 'revoke', 'Lena'])).status).toBe(0)
    const gone = await bench.cli(['person', 'link', personId])
    expect([gone.status, gone.stderr]).toEqual([1, expect.stringContaining('was revoked')])
  })

  it('invite names an account at a provider, both parts of it, and disconnect ends one', async () => {
    const [issuer, subject] = ['https://login.example.com/realms/main', 'a subject']
    const invite = (...words: string[]) => bench.cli(['person', 'invite', 'Iris', '--roles', 'VIEWER', ...words])
    expect((await invite('--issuer', issuer)).status).toBe(1)
    expect((await invite('--subject', subject)).status).toBe(1)
    expect((await invite('--issuer', 'login', '--subject', subject)).status).toBe(64)
    expect((await invite('--issuer', `${issuer}?x=1`, '--subject', subject)).status).toBe(64)
    expect((await invite('--issuer', issuer, '--subject', 'ä')).status).toBe(64)
    const card = await invite('--issuer', issuer, '--subject', '4111111111111111')
    expect([card.status, card.stderr]).toEqual([64, expect.stringContaining('could be a card number')])
    const said = await invite('--issuer', issuer, '--subject', subject)
    expect(said.status, said.stderr).toBe(0)
    const [row] = await bench.rows(
      `select issuer, subject, mac is not null as coded from tokenmill.invite where name = 'Iris' and used_at is null`,
    )
    expect(row).toEqual({ issuer, subject, coded: true })
    const personId = await addAdmin('Iris', { roles: ['VIEWER'] })
    await withSession({ ...process, env: bench.env }, async session => {
      const { store, ring } = await openVault(session)
      await bindIdentity(store, ring, { personId, issuer, subject })
    })
    const listed = async () =>
      (await bench.cli(['person', 'list', '--json']))
        .json<{ name: string; identities: object[] }[]>()
        .find(({ name }) => name === 'Iris')?.identities
    expect(await listed()).toEqual([{ issuer, subject, state: 'live', connected_at: expect.any(String) }])
    const words = ['person', 'disconnect', 'Iris', '--issuer', issuer]
    expect((await bench.cli(words)).status).toBe(64)
    expect((await bench.cli([...words, '--subject', 'another'])).status).toBe(1)
    const ended = await bench.cli([...words, '--subject', subject, '--json', '--reason', 'left'])
    expect(ended.json()).toEqual({ person_id: personId, issuer, subject, disconnected: true })
    expect(await listed()).toEqual([])
    const told = await bench.rows<{ outcome: string; detail: object }>(
      `select outcome, detail from tokenmill.audit where action = 'identity.disconnect' order by audit_id`,
    )
    expect(told.map(({ outcome }) => outcome)).toEqual(['refused', 'done'])
    expect(told[1]).toMatchObject({ detail: { issuer, sub: subject, reason: 'left' } })
    // Whoever has the workers' login puts in a row. It has no code, and takes the account.
    await bench.rows(
      'insert into tokenmill.person_identity (identity_id, person_id, issuer, subject) values ($1, $2, $3, $4)',
      { values: [randomUUID(), personId, issuer, subject] },
    )
    expect(await listed()).toMatchObject([{ issuer, subject, state: 'not written by tokenmill' }])
    expect((await bench.cli(['person', 'list'])).stdout).toMatch(/Iris .*0, 1 not written by tokenmill/)
    expect((await bench.cli([...words, '--subject', subject])).status).toBe(0)
    expect(await listed()).toEqual([])
    expect((await bench.cli(['person', 'revoke', 'Iris'])).stdout).toContain('1 passkeys, 0 identities')
  })

  it('change gives a person other rights, what isn’t given stays, and an administrator stays', async () => {
    const personId = await addAdmin('Carl', { roles: ['VIEWER'], entities: [ENTITY] })
    const change = (...words: string[]) => bench.cli(['person', 'change', 'Carl', ...words])
    const rights = async () => {
      const [row] = await bench.rows(
        'select roles, entities, mac is not null as coded from tokenmill.person where person_id = $1',
        { values: [personId] },
      )
      return row
    }
    expect((await change('--roles', 'OPERATOR,VIEWER')).stdout).toMatch(/OPERATOR, VIEWER for 1 entities/)
    expect(await rights()).toEqual({ roles: ['OPERATOR', 'VIEWER'], entities: [ENTITY], coded: true })
    const said = await change('--all-entities', '--json', '--reason', 'works for all of them now')
    expect(said.json()).toMatchObject({ person_id: personId, roles: ['OPERATOR', 'VIEWER'], entities: null })
    expect(await rights()).toEqual({ roles: ['OPERATOR', 'VIEWER'], entities: null, coded: true })
    expect(await change()).toMatchObject({ status: 1, stderr: expect.stringContaining('already') })
    expect((await change('--entity', ENTITY, '--all-entities')).status).toBe(1)
    expect((await bench.cli(['person', 'change', 'Nobody', '--roles', 'VIEWER'])).status).toBe(1)
    await addAdmin('Last')
    const env = { TOKENMILL_CONSOLE_ORIGIN: `https://${RP_ID}` }
    const kept = await bench.cli(['person', 'change', 'Last', '--roles', 'VIEWER'], { env })
    expect([kept.status, kept.stderr]).toEqual([1, expect.stringContaining(RP_ID)])
    for (const name of ['Last', 'Carl'])
      expect((await bench.cli(['person', 'revoke', name, '--last'], { env })).status).toBe(0)
  })

  it('invites lists the open ones, and revoke-invite ends one of them', async () => {
    const made = (await bench.cli(['person', 'invite', 'Iris', '--roles', 'VIEWER', '--json'])).json()
    const listed = async () => (await bench.cli(['person', 'invites', '--json'])).json() as unknown as object[]
    const open = { invite_id: made['invite_id'], name: 'Iris', person_id: null, roles: ['VIEWER'], entities: null }
    expect(await listed()).toContainEqual(expect.objectContaining(open))
    expect((await bench.cli(['person', 'invites'])).stdout).toMatch(/Iris +a new person +VIEWER +all/)
    const words = ['person', 'revoke-invite', String(made['invite_id'])]
    expect((await bench.cli(words)).stdout).toContain('the invite of Iris is revoked')
    expect(await listed()).not.toContainEqual(expect.objectContaining(open))
    expect((await bench.cli(words)).status).toBe(1)
    expect((await bench.cli(['person', 'revoke-invite', 'Iris'])).status).toBe(64)
  })

  it('invites shows the rights that the person of a new link has now', async () => {
    await addAdmin('Kim', { roles: ['VIEWER'] })
    expect((await bench.cli(['person', 'link', 'Kim'])).status).toBe(0)
    expect((await bench.cli(['person', 'change', 'Kim', '--roles', 'OPERATOR'])).status).toBe(0)
    const listed = (await bench.cli(['person', 'invites', '--json'])).json<{ name: string }[]>()
    expect(listed.find(({ name }) => name === 'Kim')).toMatchObject({ roles: ['OPERATOR'] })
    expect((await bench.cli(['person', 'revoke', 'Kim'])).status).toBe(0)
  })

  it('rp-changed revokes the passkeys of the former domain, and prints links for the administrators', async () => {
    const ada = await addAdmin('Anna')
    const olga = await addAdmin('Olga', { roles: ['OPERATOR'] })
    const moved = await addAdmin('Mona', { rpId: 'new.example.com' })
    const words = (from: string) => ['person', 'rp-changed', '--from', from, '--json']
    const env = { TOKENMILL_CONSOLE_ORIGIN: 'https://new.example.com' }
    const liveOf = async () =>
      (
        await bench.rows<{ id: string }>(
          `select person_id as id from tokenmill.person_credential where revoked_at is null and mac is not null`,
        )
      ).map(({ id }) => id)
    const before = await liveOf()
    // On a host without the setting it would be the console's own domain that goes.
    expect((await bench.cli(words(RP_ID))).status).toBe(78)
    expect((await bench.cli(words('new.example.com'), { env })).stderr).toContain('is the domain of the console now')
    expect((await bench.cli(words('typo.example.com'), { env })).stderr).toContain('No live passkey is bound')
    expect(await liveOf()).toEqual(before)
    const said = await bench.cli(words(RP_ID), { env })
    expect(said.status, said.stderr).toBe(0)
    expect(said.json()).toMatchObject({
      passkeys: 2,
      domain: 'new.example.com',
      others: ['Olga'],
      links: [{ name: 'Anna', person_id: ada, link: expect.stringMatching(/^https:\/\/new\.example\.com\/welcome#/) }],
    })
    expect(await liveOf()).toEqual([moved])
    const [row] = await bench.rows<{ detail: object }>(
      `select detail from tokenmill.audit where action = 'passkey.forget-domain' and subject = $1 and outcome = 'done'`,
      { values: [RP_ID] },
    )
    expect(row?.detail).toMatchObject({ passkeys: 2, domain: 'new.example.com', locked: 2 })
    expect(olga).not.toBe(ada)
  })

  it('rp-changed lets a console begin that found passkeys of another domain only', async () => {
    await bench.rows(`update tokenmill.person_credential set revoked_at = now(), mac = null, mac_version = null`)
    await addAdmin('Only')
    const elsewhere = () =>
      withSession({ ...process, env: bench.env }, async session =>
        areAllElsewhere((await openVault(session)).store, 'new.example.com'),
      )
    expect(await elsewhere()).toBe(true)
    const env = { TOKENMILL_CONSOLE_ORIGIN: 'https://new.example.com' }
    const said = await bench.cli(['person', 'rp-changed', '--from', RP_ID], { env })
    expect(said.stdout).toMatch(/^Only {3}until \S+ {3}https:\/\/new\.example\.com\/welcome#\S{43}$/m)
    expect(await elsewhere()).toBe(false)
  })

  it('rp-changed prints the links that it could make, and says for whom there is none', async () => {
    const env = { TOKENMILL_CONSOLE_ORIGIN: 'https://new.example.com' }
    const move = async (more: string[] = []) => {
      for (const name of ['Bela', 'Cleo', 'Dora']) await addAdmin(`${name}${more.length}`)
      return bench.cli(['person', 'rp-changed', '--from', RP_ID, ...more], { env })
    }
    await bench.rows(`create function no_cleo() returns trigger language plpgsql as $$
begin if new.name like 'Cleo%' then raise exception 'no'; end if; return new; end $$;
create trigger no_cleo before insert on tokenmill.invite for each row execute function no_cleo()`)
    const said = await move()
    expect(said.status).not.toBe(0)
    for (const name of ['Bela0', 'Dora0']) expect(said.stdout).toMatch(new RegExp(`^${name} .*/welcome#`, 'm'))
    expect(said.stdout).not.toContain('Cleo')
    expect(said.stderr).toMatch(/passkeys for .* are revoked/)
    expect(said.stderr).toMatch(/`person link NAME`: .*Cleo0/)
    const json = await move(['--json'])
    expect(json.status).not.toBe(0)
    const told = json.json() as { links: { name: string }[]; others: string[] }
    expect(told.links.map(({ name }) => name)).toEqual(expect.arrayContaining(['Bela1', 'Dora1']))
    expect(told.others).toContain('Cleo1')
    await bench.rows('drop trigger no_cleo on tokenmill.invite')
    const again = await bench.cli(['person', 'rp-changed', '--from', RP_ID], { env })
    expect(again.stderr).toContain('`person link NAME`')
  })

  interface Added {
    roles?: persons.PersonRole[]
    entities?: string[] | null
    rpId?: string
  }

  // The displays of the console share its bench.
  describe('tokenmill display', () => {
    it('add prints the link once, and keeps a hash of its value alone', async () => {
      const env = { TOKENMILL_CONSOLE_ORIGIN: 'https://console.example.com' }
      const said = await bench.cli(['display', 'add', 'room 2', '--reason', 'the wall'], { env })
      expect(said.status, said.stderr).toBe(0)
      const [, value = ''] = /^https:\/\/console\.example\.com\/display\/open#([\w-]{43})\n$/.exec(said.stdout) ?? []
      const [row] = await bench.rows<{ days: number; text: string; made_by: string }>(
        `select extract(day from expires_at - created_at)::integer as days, d::text as text, made_by from tokenmill.display as d
  where link_hash = $1`,
        { values: [hash('sha256', value, 'buffer')] },
      )
      expect(row).toMatchObject({ days: 400, made_by: expect.stringMatching(/^machine:/) })
      const [audit] = await bench.rows<{ subject: string; text: string; reason: string }>(
        `select subject, t::text as text, detail->>'reason' as reason from tokenmill.audit as t where action = 'display.add'`,
      )
      expect(audit).toMatchObject({ subject: 'room 2', reason: 'the wall' })
      for (const kept of [row?.text, audit?.text]) expect(kept).not.toContain(value)
    })

    it('add refuses a name that is there, one with a card number, and a wrong origin', async () => {
      const add = (name: string, env = {}) => bench.cli(['display', 'add', name], { env })
      expect((await add('room 2')).status).toBe(1)
      expect((await add('4111 1111 1111 1111')).status).toBe(64)
      expect((await add('room 3', { TOKENMILL_CONSOLE_ORIGIN: 'http://console.example.com' })).status).toBe(78)
    })

    it('list tells which are live, and revoke ends one by its name, once', async () => {
      const added = await bench.cli(['display', 'add', 'room 4', '--entity', ENTITY, '--json'])
      expect(added.json()).toMatchObject({ name: 'room 4', entities: [ENTITY] })
      expect((await bench.cli(['display', 'revoke', 'room 4', '--json'])).json()).toEqual({
        display_id: added.json()['display_id'],
        revoked: true,
      })
      const listed = await bench.cli(['display', 'list', '--json'])
      expect(listed.json()).toMatchObject([
        { name: 'room 2', state: 'live', entities: null },
        { name: 'room 4', state: 'revoked', entities: [ENTITY] },
      ])
      expect(listed.stdout).not.toContain('open#')
      expect((await bench.cli(['display', 'revoke', 'room 4'])).status).toBe(1)
      expect((await bench.cli(['display', 'revoke', String(added.json()['display_id'])])).status).toBe(1)
      const rows = await bench.rows<{ outcome: string }>(
        `select outcome from tokenmill.audit where action = 'display.revoke' order by audit_id`,
      )
      expect(rows.map(({ outcome }) => outcome)).toEqual(['done', 'refused'])
    })
  })

  /** As a worker makes one of an invite. */
  const addAdmin = (name: string, { roles = ['ADMIN'], entities = null, rpId = RP_ID }: Added = {}) =>
    withSession({ ...process, env: bench.env }, async session => {
      const { store, ring } = await openVault(session)
      const person = { personId: randomUUID(), name, roles, entities, isLocal: false }
      const { credentialId, publicJwk } = openAuthenticator({ origin: `https://${rpId}`, rpId })
      const passkey = {
        credentialId,
        personId: person.personId,
        publicJwk,
        alg: 'ES256' as const,
        rpId,
        signCount: 0,
      }
      await persons.insert(store, person)
      await grantPerson(store, ring, person)
      await credentials.insert(store, passkey)
      await grantPasskey(store, ring, passkey)
      return person.personId
    })
})
