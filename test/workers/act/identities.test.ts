// A person connects an account at an OpenID provider by a touch of a passkey, or by an invite. Whoever holds the console's key, its
// rights in the database and the queues binds nobody.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { GRANT_LISTS } from '../../../cli/open/grant-lists.ts'
import { listUngranted } from '../../../src/acts/grants.ts'
import { invitePerson, revokePerson } from '../../../src/acts/person.ts'
import { changePerson } from '../../../src/acts/person-rights.ts'
import type { Act } from '../../../src/job/system/act.ts'
import type { Account } from '../../../src/store/person/identities.ts'
import { describeStore } from '../../support/engines.ts'
import type { Installation } from '../../support/installation.ts'
import { openAuthenticator } from '../../vault/passkey/authenticator.ts'
import { type ActBench, type Member, openActBench, openActInstallation, SITE, type Unproved } from './bench.ts'

const ISSUER = 'https://login.example.com/realms/main'
const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const

describeStore('an account at a provider', engine => {
  let installation: Installation
  let bench: ActBench
  beforeAll(async () => {
    installation = await openActInstallation(engine)
    bench = await openActBench(installation)
  })
  afterAll(async () => {
    await bench?.close()
    await installation?.close()
  })

  const rows = async <R = Record<string, unknown>>(text: string, ...values: unknown[]) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const account = (): Account => ({ issuer: ISSUER, subject: randomUUID() })
  const about = (
    member: Pick<Member, 'personId'>,
    act: 'identity.connect' | 'identity.disconnect',
    { issuer, subject }: Account,
    odd: Partial<Unproved> = {},
  ) => bench.on(member, { act, subject: member.personId, parameters: { issuer, subject }, seen: null }, odd)
  const connect = (member: Member, of: Account) =>
    bench.send(bench.touch(member, about(member, 'identity.connect', of)))
  const disconnect = (member: Member, of: Account) =>
    bench.send(bench.touch(member, about(member, 'identity.disconnect', of)))
  const liveOf = async ({ personId }: Pick<Member, 'personId'>) =>
    (
      await rows<{ subject: string }>(
        `select subject from tokenmill.person_identity where person_id = $1 and revoked_at is null and mac is not null
order by created_at`,
        personId,
      )
    ).map(({ subject }) => subject)
  const invite = async (name: string, of: Account) => {
    const person = { name, roles: ['VIEWER' as const], entities: null, account: of }
    return invitePerson({ ...installation.vault, rpId: SITE.rpId }, person, BY, Date.now())
  }
  const enrol = (invited: { inviteId: string; secret: string }, personId: string) =>
    bench.send(bench.enrol(invited.secret, openAuthenticator(SITE), bench.enrolment(invited, personId)))

  it('is connected and disconnected by a touch, for every role, and connected again', async () => {
    for (const role of ['VIEWER', 'OPERATOR', 'ADMIN'] as const) {
      const member = await bench.join(`Connect ${role}`, [role])
      const own = account()
      expect(await connect(member, own)).toBe('DONE')
      expect(await liveOf(member)).toEqual([own.subject])
      expect(await connect(member, own)).toBe('identity_taken')
      expect(await disconnect(member, own)).toBe('DONE')
      expect(await disconnect(member, own)).toBe('identity_unknown')
      expect(await connect(member, own)).toBe('DONE')
      const told = await rows(
        `select action, outcome, detail from tokenmill.audit where subject = $1 and action like 'identity.%' order by audit_id`,
        member.personId,
      )
      const by = { issuer: ISSUER, sub: own.subject, credential: member.authenticator.credentialId }
      expect(told.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
        ...['identity.connect done', 'identity.connect refused', 'identity.disconnect done'],
        ...['identity.disconnect refused', 'identity.connect done'],
      ])
      expect(told[0]).toMatchObject({ detail: by })
    }
  })

  it('is one person’s: nobody else gets it, and nobody disconnects that of another', async () => {
    const own = account()
    const first = await bench.join('First', ['VIEWER'])
    const second = await bench.join('Second', ['ADMIN'])
    expect(await connect(first, own)).toBe('DONE')
    expect(await connect(second, own)).toBe('identity_taken')
    expect(await disconnect(second, own)).toBe('identity_unknown')
    expect(await invite('Third', own)).toEqual({ refused: 'identity_taken' })
    // Two people at once.
    const other = account()
    const said = await Promise.all([connect(first, other), connect(second, other)])
    expect(said.toSorted()).toEqual(['DONE', 'identity_taken'])
  })

  it('is not connected but as the touch covers it', async () => {
    const member = await bench.join('Tess', ['ADMIN'])
    const other = await bench.join('Tom', ['ADMIN'])
    const own = account()
    const request = about(member, 'identity.connect', own)
    const touched = bench.touch(member, request)
    const tries: [string, Act, string][] = [
      ['another subject', { ...touched, parameters: { ...own, subject: 'thief' } }, 'passkey_challenge'],
      ['another issuer', { ...touched, parameters: { ...own, issuer: 'https://evil.example' } }, 'passkey_challenge'],
      ['no touch', { ...request, proof: null }, 'passkey_missing'],
      ['a touch of another person', bench.touch(other, request), 'passkey_unknown'],
      [
        'for another person',
        bench.touch(member, { ...about(other, 'identity.connect', own), person_id: member.personId }),
        'act_forbidden',
      ],
      ['no URL', bench.touch(member, about(member, 'identity.connect', { ...own, issuer: 'login' })), 'field_value'],
      ['no subject', bench.touch(member, about(member, 'identity.connect', { ...own, subject: '' })), 'field_value'],
    ]
    for (const [what, sent, said] of tries) expect(await bench.send(sent), what).toBe(said)
    expect([await liveOf(member), await liveOf(other)]).toEqual([[], []])
  })

  it('is bound by the invite that names it, and by no other', async () => {
    const own = account()
    const invited = await invite('Ines', own)
    if (!('done' in invited)) return expect.fail()
    const personId = randomUUID()
    // Whoever owns the database puts in an account of theirs.
    const change = 'update tokenmill.invite set subject = $2 where invite_id = $1'
    await rows(change, invited.done.inviteId, 'thief')
    expect(await enrol(invited.done, personId)).toBe('invite_unknown')
    await rows(change, invited.done.inviteId, own.subject)
    expect(await enrol(invited.done, personId)).toBe('DONE')
    expect(await liveOf({ personId })).toEqual([own.subject])
    const [row] = await rows(
      `select detail from tokenmill.audit where action = 'person.enrol' and subject = $1 and outcome = 'done'`,
      personId,
    )
    expect(row).toMatchObject({ detail: { issuer: ISSUER, sub: own.subject } })
  })

  it('that somebody got meanwhile leaves the invite unused and nobody enrolled', async () => {
    const own = account()
    const invited = await invite('Late', own)
    if (!('done' in invited)) return expect.fail()
    const quick = await bench.join('Quick', ['VIEWER'])
    expect(await connect(quick, own)).toBe('DONE')
    const personId = randomUUID()
    expect(await enrol(invited.done, personId)).toBe('identity_taken')
    expect(await rows('select from tokenmill.person where person_id = $1', personId)).toEqual([])
    expect(await disconnect(quick, own)).toBe('DONE')
    expect(await enrol(invited.done, personId)).toBe('DONE')
    expect(await liveOf({ personId })).toEqual([own.subject])
  })

  it('goes with a new link, which may name another, and with the person', async () => {
    const member = await bench.join('Rita', ['VIEWER'])
    const [stolen, next] = [account(), account()]
    expect(await connect(member, stolen)).toBe('DONE')
    const again = await bench.invite('Rita', ['VIEWER'])
    expect(await enrol(again, member.personId)).toBe('DONE')
    expect(await liveOf(member)).toEqual([])
    const named = await invite('Rita', next)
    if (!('done' in named)) return expect.fail()
    expect(await enrol(named.done, member.personId)).toBe('DONE')
    expect(await liveOf(member)).toEqual([next.subject])
    const { personId } = member
    const ended = await revokePerson({ ...installation.vault, rpId: SITE.rpId }, { personId, isLast: false }, BY)
    expect(ended).toEqual({ done: { passkeys: 1, identities: 1, invites: 0 } })
    expect(await liveOf(member)).toEqual([])
  })

  it('leaves somebody who was here before the rights of now, and the audit tells none', async () => {
    const member = await bench.join('Rhea', ['VIEWER'])
    const { personId } = member
    const named = await invite('Rhea', account())
    if (!('done' in named)) return expect.fail()
    const rights = { personId, roles: ['OPERATOR' as const], entities: [randomUUID()] }
    const { roles, entities } = rights
    expect(await changePerson({ ...installation.vault, rpId: SITE.rpId }, rights, BY)).toEqual({ done: { invites: 0 } })
    expect(await enrol(named.done, personId)).toBe('DONE')
    const [told] = await rows(
      `select detail from tokenmill.audit where action = 'person.enrol' and subject = $1 order by audit_id desc limit 1`,
      personId,
    )
    expect(told).toMatchObject({ detail: { name: 'Rhea' } })
    expect(Object.keys(told?.['detail'] as object)).not.toContain('roles')
    const [row] = await rows('select roles, entities from tokenmill.person where person_id = $1', personId)
    expect(row).toEqual({ roles, entities })
  })

  it('is nobody’s by the console’s rights, and a row of the database’s owner has no code', async () => {
    const member = await bench.join('Theo', ['ADMIN'])
    const values = `(gen_random_uuid(), '${member.personId}', '${ISSUER}', 'thief')`
    const insert = `insert into tokenmill.person_identity (identity_id, person_id, issuer, subject) values ${values}`
    const { store, ring } = installation.vault
    for (const text of [insert, `update tokenmill.person_identity set person_id = '${member.personId}'`])
      await expect(
        store.transaction(async db => {
          await db.query({ text: 'set local role tokenmill_console' })
          await db.query({ text })
        }),
      ).rejects.toThrow()
    expect(await listUngranted(store, ring, GRANT_LISTS)).toEqual([])
    await rows(insert)
    expect(await listUngranted(store, ring, GRANT_LISTS)).toEqual([expect.stringMatching(/^identity /)])
    await rows(`delete from tokenmill.person_identity where subject = 'thief'`)
  })

  it('leaves rows whose proofs are right', async () => {
    const { wrong, right } = await bench.proofs()
    expect(wrong).toEqual([])
    expect(Object.keys(right)).toEqual(expect.arrayContaining(['identity.connect', 'identity.disconnect']))
  })
})
