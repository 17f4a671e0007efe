// An administrator for all entities invites, changes and revokes people with a touch, by the acts of the commands. With the
// console's key, its database user and the queues nobody becomes anybody.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { GRANT_LISTS } from '../../../cli/open/grant-lists.ts'
import { listUngranted } from '../../../src/acts/grants.ts'
import { ensureLocalPerson, newSecret, revokePerson } from '../../../src/acts/person.ts'
import { changePerson, linkPerson } from '../../../src/acts/person-rights.ts'
import { isRefusal } from '../../../src/errors.ts'
import type { Act } from '../../../src/job/system/act.ts'
import type { PersonRole } from '../../../src/job/system/act-row.ts'
import { PEOPLE_ACTS, type PeopleActName, seenOfInvite, seenOfPerson } from '../../../src/job/system/people.ts'
import type { Account } from '../../../src/store/person/identities.ts'
import * as invites from '../../../src/store/person/invites.ts'
import * as persons from '../../../src/store/person/persons.ts'
import { openAct } from '../../../workers/act.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation } from '../../support/installation.ts'
import { openAuthenticator } from '../../vault/passkey/authenticator.ts'
import { type ActBench, type Member, openActBench, openActInstallation, SITE, type Unproved } from './bench.ts'

const NAMES = Object.keys(PEOPLE_ACTS) as PeopleActName[]
const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const NOBODY = '00000000-0000-4000-8000-000000000000'
const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const

describeStore('an act on people', engine => {
  let installation: Installation
  let bench: ActBench
  let ada: Member
  beforeAll(async () => {
    installation = await openActInstallation(engine)
    bench = await openActBench(installation)
    ada = await bench.join('Ada', ['ADMIN'])
  })
  afterAll(async () => {
    await bench?.close()
    await installation?.close()
  })

  const rows = async <R = Record<string, unknown>>(text: string, ...values: unknown[]) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const store = () => installation.vault.store
  const site = () => ({ ...installation.vault, rpId: SITE.rpId })
  const keyOf = ({ key }: ReturnType<typeof newSecret>) => ({
    lookup_hash: key.lookupHash.toString('base64url'),
    public_key: key.publicKey.toString('base64url'),
  })
  const seenNow = async (personId: string) => {
    const person = await persons.find(store(), personId)
    return person ? seenOfPerson(person) : 'A'.repeat(43)
  }
  /** The requests, each as its page would begin it now. */
  const inviting = (
    name: string,
    {
      secret = newSecret(),
      roles = ['VIEWER'] as PersonRole[],
      entities = null as string[] | null,
      account = undefined as Account | undefined,
    } = {},
  ) => ({
    act: 'person.invite' as const,
    subject: name,
    seen: null,
    secret,
    parameters: { roles, entities, ...(account && { account }), ...keyOf(secret) },
  })
  const changing = async (personId: string, roles: PersonRole[], entities: string[] | null = null) => ({
    act: 'person.change' as const,
    subject: personId,
    seen: await seenNow(personId),
    parameters: { roles, entities },
  })
  const linking = async (personId: string, secret = newSecret()) => ({
    act: 'person.link' as const,
    subject: personId,
    seen: await seenNow(personId),
    secret,
    parameters: keyOf(secret),
  })
  const revoking = async (personId: string) => ({
    act: 'person.revoke' as const,
    subject: personId,
    seen: await seenNow(personId),
    parameters: {},
  })
  const ending = async (inviteId: string) => {
    const invite = await invites.find(store(), inviteId)
    const seen = invite ? seenOfInvite(invite) : 'A'.repeat(43)
    return { act: 'invite.revoke' as const, subject: inviteId, seen, parameters: {} }
  }
  type Asked = Pick<Unproved, 'act' | 'subject' | 'parameters' | 'seen'>
  const touched = (member: Member, { act: name, subject, parameters, seen }: Asked) =>
    bench.touch(member, bench.on(member, { act: name, subject, parameters, seen }))
  const send = (member: Member, asked: Asked) => bench.send(touched(member, asked))
  const openInvite = async (name: string) =>
    (await invites.list(store())).find(invite => invite.name === name && invite.usedAt === null)
  const personOf = async ({ personId }: Pick<Member, 'personId'>) => {
    const person = await persons.find(store(), personId)
    return person && { roles: person.roles, entities: person.entities, isRevoked: person.revokedAt !== null }
  }
  /** All that such an act could change. */
  const everything = async () => {
    const [people, open, keys] = await Promise.all([
      rows('select person_id, name, roles, entities, revoked_at, mac from tokenmill.person order by 1'),
      rows('select invite_id, roles, entities, public_key, used_at, mac from tokenmill.invite order by 1'),
      rows('select credential_id, person_id, revoked_at from tokenmill.person_credential order by 1'),
    ])
    return { people, open, keys }
  }
  /** One request for each of the acts, on people made for it. */
  const oneOfEach = async (label: string): Promise<Record<PeopleActName, Asked>> => {
    const member = await bench.join(`${label} known`, ['OPERATOR'])
    const { inviteId } = await bench.invite(`${label} open`, ['VIEWER'])
    return {
      'person.invite': inviting(`${label} new`, { roles: ['ADMIN'] }),
      'person.change': await changing(member.personId, ['ADMIN']),
      'person.link': await linking(member.personId),
      'person.revoke': await revoking(member.personId),
      'invite.revoke': await ending(inviteId),
    }
  }

  it('invites with a key that a browser made, and only the link with its secret lets somebody in', async () => {
    const asked = inviting('Ines', { roles: ['OPERATOR', 'VIEWER'], entities: [ENTITY] })
    const answer = await bench.ask(touched(ada, asked))
    expect(answer).toMatchObject({ status: 'SUCCEEDED', record: { audit_id: expect.any(Number) } })
    const invite = await openInvite('Ines')
    expect(invite).toMatchObject({
      roles: ['OPERATOR', 'VIEWER'],
      entities: [ENTITY],
      invitedBy: `person:${ada.personId}`,
    })
    const [row] = await rows('select actor, subject, detail from tokenmill.audit order by audit_id desc limit 1')
    expect(row).toMatchObject({
      actor: `person:${ada.personId}`,
      subject: 'Ines',
      detail: { invite_id: invite?.inviteId, reason: 'a test', credential: ada.authenticator.credentialId },
    })
    const personId = randomUUID()
    const enrol = (secret: string) =>
      bench.send(bench.enrol(secret, openAuthenticator(SITE), bench.enrolment(invite ?? { inviteId: '' }, personId)))
    expect([await enrol(newSecret().secret), await enrol(asked.secret.secret)]).toEqual(['invite_unknown', 'DONE'])
    expect(await personOf({ personId })).toEqual({
      roles: ['OPERATOR', 'VIEWER'],
      entities: [ENTITY],
      isRevoked: false,
    })
    // The same link is of no use for anybody else, and a person who is here gets none by an invite.
    expect(await send(ada, inviting('Ivo', { secret: asked.secret }))).toBe('act_repeated')
    expect(await send(ada, inviting('Ines'))).toBe('person_exists')
    expect(await send(ada, inviting('local'))).toBe('person_local')
  })

  it('connects the account that it names at the enrolment, and no account of somebody else', async () => {
    const account = { issuer: 'https://login.example.com/realms/main', subject: 'olga-at-login' }
    const asked = inviting('Olga', { account })
    expect(await send(ada, asked)).toBe('DONE')
    const invite = await openInvite('Olga')
    expect(invite).toMatchObject(account)
    const [row] = await rows('select detail from tokenmill.audit order by audit_id desc limit 1')
    expect(row).toMatchObject({ detail: { issuer: account.issuer, sub: account.subject } })
    const connected = () =>
      rows('select person_id from tokenmill.person_identity where subject = $1 and revoked_at is null', account.subject)
    expect(await connected()).toEqual([])
    const personId = randomUUID()
    const request = bench.enrolment(invite ?? { inviteId: '' }, personId)
    expect(await bench.send(bench.enrol(asked.secret.secret, openAuthenticator(SITE), request))).toBe('DONE')
    expect(await connected()).toEqual([{ person_id: personId }])
    expect(await send(ada, inviting('Second Olga', { account }))).toBe('identity_taken')
    expect(await openInvite('Second Olga')).toBeUndefined()
  })

  it('changes roles and entities under a new code, and ends the invites of somebody who may invite no more', async () => {
    const cleo = await bench.join('Cleo', ['ADMIN'])
    expect(await send(cleo, inviting('Of Cleo'))).toBe('DONE')
    expect(await send(ada, await changing(cleo.personId, ['ADMIN', 'OPERATOR']))).toBe('DONE')
    expect(await openInvite('Of Cleo')).toBeDefined()
    expect(await send(ada, await changing(cleo.personId, ['ADMIN'], [ENTITY]))).toBe('DONE')
    expect(await openInvite('Of Cleo')).toBeUndefined()
    expect(await personOf(cleo)).toEqual({ roles: ['ADMIN'], entities: [ENTITY], isRevoked: false })
    expect(await listUngranted(store(), installation.vault.ring, GRANT_LISTS)).toEqual([])
    expect(await send(ada, await changing(cleo.personId, ['ADMIN'], [ENTITY]))).toBe('act_state')
    const [row] = await rows(`select detail from tokenmill.audit where action = 'person.change' and outcome = 'done'
order by audit_id desc limit 1`)
    expect(row).toMatchObject({
      detail: {
        name: 'Cleo',
        entities: [ENTITY],
        former: { roles: ['ADMIN', 'OPERATOR'], entities: null },
        invites: 1,
      },
    })
    // It holds for what is sent from now on.
    expect(await send(cleo, inviting('Late'))).toBe('act_forbidden')
  })

  it('makes a new link for somebody else, whose passkey replaces the former ones, and never for oneself', async () => {
    const lea = await bench.join('Lea', ['OPERATOR'])
    const asked = await linking(lea.personId)
    expect(await send(ada, asked)).toBe('DONE')
    const invite = await openInvite('Lea')
    expect(invite).toMatchObject({ personId: lea.personId, roles: ['OPERATOR'] })
    const request = bench.enrolment(invite ?? { inviteId: '' }, lea.personId)
    expect(await bench.send(bench.enrol(asked.secret.secret, openAuthenticator(SITE), request))).toBe('DONE')
    const batch = await bench.batch()
    const pause = bench.touch(lea, await bench.about(lea, 'batch.pause', batch))
    expect(await bench.send(pause)).toBe('passkey_unknown')
    expect(await send(ada, await linking(ada.personId))).toBe('person_own')
  })

  it('revokes a person with passkeys and invites, and an invite', async () => {
    const rita = await bench.join('Rita', ['ADMIN'])
    expect(await send(rita, inviting('Of Rita'))).toBe('DONE')
    const { inviteId } = await bench.invite('Rita', ['ADMIN'])
    const stale = await ending(inviteId)
    expect(await send(ada, await revoking(rita.personId))).toBe('DONE')
    expect(await personOf(rita)).toMatchObject({ isRevoked: true })
    expect([await openInvite('Rita'), await openInvite('Of Rita')]).toEqual([undefined, undefined])
    expect(await send(ada, stale)).toBe('changed_meanwhile')
    for (const asked of [await revoking(rita.personId), await linking(rita.personId)])
      expect(await send(ada, asked)).toBe('act_state')
    const open = await bench.invite('Uwe', ['VIEWER'])
    expect(await send(ada, await ending(open.inviteId))).toBe('DONE')
    const used = bench.enrol(open.secret, openAuthenticator(SITE), bench.enrolment(open, randomUUID()))
    expect(await bench.send(used)).toBe('invite_unknown')
    expect(await send(ada, await ending(open.inviteId))).toBe('act_state')
  })

  it('is of an ADMIN for all entities only, and for nobody else does it depend on who is there', async () => {
    const others: [Member, string][] = []
    for (const role of ['VIEWER', 'OPERATOR'] as const) others.push([await bench.join(`One ${role}`, [role]), role])
    others.push([await bench.join('Limited', ['ADMIN', 'OPERATOR', 'VIEWER'], [ENTITY]), 'ADMIN for an entity'])
    const each = await oneOfEach('roles')
    const before = await everything()
    for (const [member, who] of others) {
      for (const name of NAMES) {
        const said = [await send(member, each[name])]
        if (name !== 'person.invite') said.push(await send(member, { ...each[name], subject: NOBODY }))
        expect([who, name, new Set(said)]).toEqual([who, name, new Set(['act_forbidden'])])
      }
    }
    expect(await everything()).toEqual(before)
    for (const name of ['person.change', 'person.link', 'person.revoke', 'invite.revoke'] as const) {
      const missing = { ...each[name], subject: NOBODY }
      expect(await send(ada, missing)).toBe(name === 'invite.revoke' ? 'invite_unknown' : 'person_unknown')
    }
    const done = []
    for (const name of ['person.invite', 'person.link', 'invite.revoke', 'person.change'] as const)
      done.push(await send(ada, each[name]))
    expect(done).toEqual(['DONE', 'DONE', 'DONE', 'DONE'])
    // The row is another one now.
    expect(await send(ada, each['person.revoke'])).toBe('changed_meanwhile')
  })

  it('is refused without the passkey, and if anything of it was changed after the touch', async () => {
    const each = await oneOfEach('theft')
    const local = await ensureLocalPerson(installation.vault)
    const stranger = { ...ada, authenticator: openAuthenticator(SITE) }
    const viewer = await bench.join('theft viewer', ['VIEWER'])
    const before = await everything()
    for (const name of NAMES) {
      const honest = touched(ada, each[name])
      const own = (personId: string): Act => ({ ...honest, person_id: personId, proof: null })
      const tries: [string, Act, string][] = [
        ['no proof', own(ada.personId), 'passkey_missing'],
        ['the local person of an embedded engine', own(local), 'passkey_missing'],
        ['an unknown passkey', touched(stranger, each[name]), 'passkey_unknown'],
        [
          'the passkey of somebody else',
          { ...touched(viewer, each[name]), person_id: ada.personId },
          'passkey_unknown',
        ],
        ['another reason', { ...honest, reason: 'said by nobody' }, 'passkey_challenge'],
        ['another subject', { ...honest, subject: name === 'person.invite' ? 'Eve' : NOBODY }, 'passkey_challenge'],
      ]
      const { parameters } = honest
      if ('roles' in parameters)
        for (const changed of [{ roles: ['VIEWER', 'ADMIN'] }, { roles: ['OPERATOR'] }, { entities: [OTHER] }])
          tries.push([
            JSON.stringify(changed),
            { ...honest, parameters: { ...parameters, ...changed } },
            'passkey_challenge',
          ])
      const { lookup_hash: lookup, public_key: key } = keyOf(newSecret())
      if ('public_key' in parameters)
        for (const changed of [{ public_key: key }, { lookup_hash: lookup }])
          tries.push([
            JSON.stringify(changed),
            { ...honest, parameters: { ...parameters, ...changed } },
            'passkey_challenge',
          ])
      if (name === 'person.invite') {
        const account = { issuer: 'https://login.example.com', subject: 'theft' }
        const named = touched(ada, inviting('Theft', { account }))
        const { account: _, ...bare } = named.parameters
        const to = (what: string, request: Act, changed: object) =>
          tries.push([what, { ...request, parameters: { ...changed } }, 'passkey_challenge'])
        to('another subject of the account', named, { ...bare, account: { ...account, subject: 'thief' } })
        to('another issuer', named, { ...bare, account: { ...account, issuer: 'https://thief.example.com' } })
        to('no account', named, bare)
        to('an account that was not there', honest, { ...parameters, account })
      }
      if (name !== 'person.invite')
        tries.push(['another state', { ...honest, seen: 'A'.repeat(43) }, 'passkey_challenge'])
      for (const [what, request, said] of tries)
        expect([name, what, await bench.send(request)]).toEqual([name, what, said])
    }
    expect(await everything()).toEqual(before)
  })

  it('has a form: known roles, each once, entities that are UUIDs, a name, a whole key', async () => {
    const form = async (changed: Record<string, unknown>, subject = 'Eve') => {
      const asked = inviting(subject)
      return send(ada, { ...asked, parameters: { ...asked.parameters, ...changed } })
    }
    const issuer = 'https://login.example.com'
    const accounts: unknown[] = [
      ...[{ issuer }, { subject: 'x' }, 'x', null, { issuer, subject: 'x', email: 'x' }],
      ...['', ' x', 'x ', 'x\ny', 'x\u0000', 'é', 'x'.repeat(256), '4111111111111111'].map(subject => ({
        issuer,
        subject,
      })),
      ...['', 'login', 'javascript:alert(1)', `${issuer}/?a=b`, `${issuer}/#a`, 'https://a:b@login.example.com'].map(
        one => ({
          issuer: one,
          subject: 'x',
        }),
      ),
    ]
    for (const account of accounts) expect([account, await form({ account })]).toEqual([account, 'field_value'])
    const wrong = [
      { roles: ['ROOT'] },
      { roles: [] },
      { roles: ['ADMIN', 'ADMIN'] },
      { entities: [] },
      { entities: ['x'] },
    ]
    for (const changed of [...wrong, { public_key: 'AAAA' }, { lookup_hash: '' }, { is_local: true }])
      expect([changed, await form(changed)]).toEqual([changed, 'field_value'])
    for (const name of [' Eve', 'card 4111111111111111', 'x'.repeat(65)])
      expect([name, await form({}, name)]).toEqual([name, 'field_value'])
    expect(await openInvite('Eve')).toBeUndefined()
  })

  it('of the local person needs no passkey on the embedded engine, and is never on that person', async () => {
    const local = await ensureLocalPerson(installation.vault)
    const { ring, installationId } = installation.vault
    const [deps, console] = [{ ring, clock: Date.now } as never, { ...SITE, installationId, isEmbedded: true }]
    const without = async (asked: Asked) => {
      const { act: name, subject, parameters, seen } = asked
      const request = { ...bench.on({ personId: local }, { act: name, subject, parameters, seen }), proof: null }
      const decision = await openAct(console).decide(
        { request, receiptId: randomUUID() } as never,
        request as never,
        deps,
      )
      if (!('save' in decision)) return expect.fail()
      const said = await store().transaction(decision.save)
      return isRefusal(said) ? said.reason : 'DONE'
    }
    expect(await without(inviting('Of the local person'))).toBe('DONE')
    const [row] = await rows('select detail from tokenmill.audit order by audit_id desc limit 1')
    expect(row).toMatchObject({ detail: { unproved: true } })
    for (const asked of [await changing(local, ['VIEWER']), await linking(local), await revoking(local)])
      expect(await send(ada, asked)).toBe('person_local')
  })

  /** Nobody else is an administrator who can act. */
  const only = async (...members: Member[]) => {
    const all = await rows<{ id: string }>(
      `select person_id as id from tokenmill.person where revoked_at is null and not is_local and 'ADMIN' = any (roles)
and entities is null and person_id <> all ($1)`,
      members.map(({ personId }) => personId),
    )
    for (const { id } of all) await revokePerson(site(), { personId: id, isLast: true }, BY)
  }
  const canAct = async () =>
    rows<{ name: string }>(
      `select name from tokenmill.person as p where revoked_at is null and not is_local and 'ADMIN' = any (roles) and entities is null
and exists (select from tokenmill.person_credential as k where k.person_id = p.person_id and k.revoked_at is null)`,
    )

  it('leaves the last ADMIN who can act, whoever acts, and whatever is done at once', async () => {
    const amy = await bench.join('Amy', ['ADMIN'])
    await only(amy)
    for (const asked of [
      await revoking(amy.personId),
      await changing(amy.personId, ['OPERATOR']),
      await changing(amy.personId, ['ADMIN'], [ENTITY]),
    ])
      expect(await send(amy, asked)).toBe('last_admin')
    const byCommand = { personId: amy.personId, roles: ['VIEWER' as const], entities: null }
    expect(await changePerson(site(), byCommand, BY)).toEqual({ refused: 'last_admin' })
    // An invite that waits is no administrator yet, nor is one for an entity.
    expect(await linkPerson(site(), amy.personId, BY, Date.now())).toHaveProperty('done')
    await bench.invite('Not yet', ['ADMIN'])
    expect(await send(amy, await revoking(amy.personId))).toBe('last_admin')
    type Way = (own: Member, other: Member) => Promise<Asked>
    const ways: [string, Way][] = [
      ['each revokes the other', (_own, other) => revoking(other.personId)],
      ['each demotes the other', (_own, other) => changing(other.personId, ['VIEWER'])],
      ['each goes', own => revoking(own.personId)],
      ['each limits himself', own => changing(own.personId, ['ADMIN'], [ENTITY])],
    ]
    for (const [what, way] of ways) {
      const [one, two] = [await bench.join(`One ${what}`, ['ADMIN']), await bench.join(`Two ${what}`, ['ADMIN'])]
      await only(one, two)
      const [first, second] = [touched(one, await way(one, two)), touched(two, await way(two, one))]
      const said = await Promise.all([bench.send(first), bench.send(second)])
      expect([what, said.filter(word => word === 'DONE').length]).toEqual([what, 1])
      expect([what, (await canAct()).length]).toEqual([what, 1])
    }
  })

  it('leaves rows whose proofs are right', async () => {
    const { wrong, right } = await bench.proofs()
    expect(wrong).toEqual([])
    expect(Object.keys(right)).toEqual(
      expect.arrayContaining(['person.invite', 'person.change', 'person.link', 'person.revoke', 'invite.revoke']),
    )
  })
})
