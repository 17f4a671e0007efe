// The page People and its acts up to the passkey: who sees it, what it shows, and which acts it begins. What a worker does with
// such an act is in test/workers/act/people-acts.test.ts.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newSecret } from '../../../../src/acts/person.ts'
import { seenOfInvite, seenOfPerson } from '../../../../src/job/system/people.ts'
import * as invites from '../../../../src/store/person/invites.ts'
import * as persons from '../../../../src/store/person/persons.ts'
import { type Answer, type ConsoleBundle, OURS, openConsoleBundle, type Person, THEIRS } from '../bundle.ts'

const NOBODY = '00000000-0000-4000-8000-000000000000'
const CARD = '4111111111111111'
const HOSTILE = `"><img src=x onerror=alert(1)>{{7*7}}`

let bundle: ConsoleBundle
let ada: Person
let olga: Person
let limited: Person
let inviteId: string
const secret = newSecret()
const KEY = {
  lookup_hash: secret.key.lookupHash.toString('base64url'),
  public_key: secret.key.publicKey.toString('base64url'),
}

beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada')
  olga = await bundle.addPerson('olga', { roles: ['OPERATOR'], entities: null })
  limited = await bundle.addPerson('limited', { roles: ['ADMIN'], entities: [OURS] })
  await addPasskey('fits', ada, 'localhost')
  await addPasskey('former', olga, 'old.example.com')
  inviteId = randomUUID()
  await bundle.rows(
    `insert into tokenmill.invite (invite_id, lookup_hash, public_key, name, roles, entities, invited_by, expires_at)
values ($1, $2, $2, 'canary-invite', '{OPERATOR}', $3, $4, now() + interval '3 hours')`,
    [inviteId, secret.key.lookupHash, [THEIRS], `person:${ada.personId}`],
  )
})
afterAll(() => bundle?.close())

const addPasskey = (id: string, { personId }: Person, rpId: string) =>
  bundle.rows(
    `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count)
values ($1, $2, '{}', 'ES256', $3, 0)`,
    [id, personId, rpId],
  )
const get = (path: string, { cookie } = ada) => bundle.call('GET', path, { cookie })
const begin = (path: string, json: Record<string, string>, { cookie } = ada) =>
  bundle.call('POST', `${path}/begin`, { cookie, json })
const rowOf = ({ text }: Answer, name: string) =>
  text.split('<tr>').find(row => row.includes(`>${name}</a>`) || row.includes(`"who">${name}<`)) ?? expect.fail(name)
const seenBy = ({ status, headers, text }: Answer) => {
  const { 'x-request-id': _, date: __, ...told } = headers
  return JSON.stringify({ status, told, text })
}
const inviting = { name: 'Nora', role_VIEWER: 'on', sees: 'all', entities: '', seen: '', reason: '', ...KEY }
const pendingOf = async ({ text }: Answer) => {
  const { nonce } = JSON.parse(text) as { nonce: string }
  const [row] = await bundle.rows<{ request: Record<string, unknown> }>(
    'select request from tokenmill.pending_act where nonce = $1',
    [nonce],
  )
  return row?.request
}

describe('the page People', () => {
  it('says who may do what, who can not act, and which invites are open, to every role', async () => {
    for (const person of [ada, olga, await bundle.addPerson('vera', { roles: ['VIEWER'] })]) {
      const page = await get('/people', person)
      expect(page.status).toBe(200)
      expect(rowOf(page, 'ada')).toMatch(/ADMIN<.*all entities<.*class="keys">1</s)
      expect(rowOf(page, 'olga')).toContain('NO PASSKEY')
      expect(rowOf(page, 'limited')).toContain('1 entity')
      const invite = rowOf(page, 'canary-invite')
      expect(invite).toMatch(/OPERATOR<.*1 entity<.*>ada</s)
      expect(page.text).toContain('Only one administrator')
      expect(page.text).toContain('tokenmill person list')
      expect(page.text.includes('Invite a person…')).toBe(person === ada)
      expect(invite.includes('Revoke…')).toBe(person === ada)
    }
    expect((await get('/people?after=x')).status).toBe(200)
    expect((await get('/people?revoked=yes')).text).toContain('Nobody was revoked.')
  })

  it('has a page for each person: passkeys, sessions, and what the person did', async () => {
    const { personId } = await bundle.addPerson('doer', { roles: ['OPERATOR'], entities: [OURS, THEIRS] })
    const person = { personId, cookie: '', sessionHash: Buffer.alloc(0) }
    await addPasskey('a', person, 'localhost')
    await addPasskey('b', person, 'old.example.com')
    for (const subject of ['their-batch', CARD, HOSTILE])
      await bundle.rows(`insert into tokenmill.audit (actor, action, subject) values ($1, 'batch.pause', $2)`, [
        `person:${personId}`,
        subject,
      ])
    const { text, status } = await get(`/people/${personId}`)
    expect(status).toBe(200)
    for (const words of ['their-batch', 'old.example.com, of no use here', OURS, THEIRS]) expect(text).toContain(words)
    expect(text).toMatch(/Sessions<\/dt><dd>1, last request/)
    expect(text).toContain(`tokenmill audit list --actor person:${personId}`)
    expect(text).not.toContain(CARD)
    expect(text).not.toContain('<img')
    for (const act of ['change', 'link', 'revoke']) {
      expect(text).toContain(`/people/${personId}/${act}`)
      expect((await get(`/people/${personId}`, olga)).text).not.toContain(`/people/${personId}/${act}`)
    }
    // Nobody is offered a link for himself.
    expect((await get(`/people/${ada.personId}`)).text).not.toContain(`/people/${ada.personId}/link`)
    for (const path of [`/people/${NOBODY}`, '/people/x', '/people/invites']) expect((await get(path)).status).toBe(404)
  })

  it('names the accounts by which a person signs in, too, and what becomes of them', async () => {
    const { personId } = await bundle.addPerson('twoways', { roles: ['VIEWER'] })
    const issuer = 'https://login.example.com/realms/main'
    const connect = (subject: string) =>
      bundle.rows(
        'insert into tokenmill.person_identity (identity_id, person_id, issuer, subject) values ($1, $2, $3, $4)',
        [randomUUID(), personId, issuer, subject],
      )
    expect((await get(`/people/${personId}`)).text).not.toContain('<h2>Accounts</h2>')
    await connect('subject-1')
    const one = await get(`/people/${personId}`)
    for (const words of [issuer, 'subject-1']) expect(one.text).toContain(words)
    expect(one.text).toContain(`tokenmill person disconnect twoways --issuer ${issuer} --subject subject-1`)
    for (const subject of [CARD, HOSTILE]) await connect(subject)
    const page = await get(`/people/${personId}`)
    expect(page.text).toContain('tokenmill person disconnect twoways --issuer ISSUER --subject SUBJECT')
    expect(page.text).not.toContain(CARD)
    expect(page.text).not.toContain('<img')
    expect(rowOf(await get('/people'), 'twoways')).toContain('3 accounts')
    expect((await get(`/people/${personId}/link`)).text).toContain(
      'replaces 0 passkeys, disconnects 3 accounts at a provider and ends 1 session',
    )
    expect((await get(`/people/${personId}/revoke`)).text).toContain(
      '0 passkeys, 3 accounts at a provider and 1 session end',
    )
  })

  it('says of an invite that an account comes with it, and which', async () => {
    const set = 'update tokenmill.invite set issuer = $2, subject = $3 where invite_id = $1'
    expect(rowOf(await get('/people'), 'canary-invite')).not.toContain('account')
    await bundle.rows(set, [inviteId, 'https://login.example.com', 'subject-of-invite'])
    expect(rowOf(await get('/people'), 'canary-invite')).toContain('with an account')
    const { text } = await get(`/people/invites/${inviteId}/revoke`)
    expect(text).toMatch(/subject-of-invite.*https:\/\/login.example.com/s)
    await bundle.rows(set, [inviteId, null, null])
  })

  it('says that it lists the open invites that end last, and no others', async () => {
    await bundle.rows(
      `insert into tokenmill.invite (invite_id, lookup_hash, public_key, name, roles, invited_by, expires_at)
select gen_random_uuid(), sha256(n::text::bytea), sha256(n::text::bytea), 'many-' || n, '{VIEWER}', 'machine:test',
  now() + make_interval(mins => n) from generate_series(1, 100) as n`,
    )
    const { text } = await get('/people')
    expect(text).toContain('canary-invite')
    expect(text).not.toContain('>many-1<')
    expect(text).toMatch(/These 100 end last; .*tokenmill person invites.* lists all/)
    await bundle.rows(`delete from tokenmill.invite where name like 'many-%'`)
  })

  it('shows hostile names as texts', async () => {
    const { personId } = await bundle.addPerson(HOSTILE)
    await bundle.rows(`update tokenmill.invite set invited_by = $1 where invite_id = $2`, [HOSTILE, inviteId])
    const paths = ['', `/${personId}`, ...['change', 'link', 'revoke'].map(act => `/${personId}/${act}`)]
    for (const path of [...paths, `/invites/${inviteId}/revoke`]) {
      const { text } = await get(`/people${path}`)
      expect(text).toContain('onerror=alert(1)')
      expect(text).not.toContain('<img')
    }
    await bundle.rows(`update tokenmill.invite set invited_by = $1 where invite_id = $2`, [
      `person:${ada.personId}`,
      inviteId,
    ])
    await bundle.rows('update tokenmill.person set revoked_at = now() where person_id = $1', [personId])
    expect((await get('/people?revoked=yes')).text).toContain('onerror=alert(1)')
    expect((await get(`/people/${personId}/link`)).text).toContain('This person was revoked.')
  })

  it('doesn’t exist for people for some entities, nor does any person or invite', async () => {
    const acts = (id: string) => ['change', 'link', 'revoke'].map(act => `/people/${id}/${act}`)
    const answers = async (id: string, invite: string) => {
      const pages = ['/people', '/people?revoked=yes', '/people/invite', `/people/${id}`]
      const forms = [...acts(id), `/people/invites/${invite}/revoke`]
      const form = { ...inviting, seen: 'A'.repeat(43), nonce: 'n', proof: '' }
      const { cookie } = limited
      return Promise.all([
        ...[...pages, ...forms].map(path => get(path, limited)),
        ...[...forms, '/people/invite'].map(path => bundle.call('POST', path, { cookie, form })),
        ...[...forms, '/people/invite'].map(path => begin(path, form, limited)),
      ])
    }
    const theirs = (await answers(ada.personId, inviteId)).map(seenBy)
    expect(theirs).toEqual((await answers(NOBODY, NOBODY)).map(seenBy))
    const nowhere = seenBy(await get('/nowhere', limited))
    expect(theirs.slice(0, 8)).toEqual(Array(8).fill(nowhere))
    expect(theirs.every(answer => answer.includes('"status":404'))).toBe(true)
    expect(nowhere).not.toContain('href=\\"/people\\"')
    expect(theirs.join()).not.toMatch(/canary|olga|>ada/)
    const [begun] = await bundle.rows<{ n: number }>(
      `select count(*) as n from tokenmill.pending_act where request->>'person_id' = $1`,
      [limited.personId],
    )
    expect(begun?.n).toBe(0)
  })
})

describe('an act on people', () => {
  it('is begun by an ADMIN alone, for what was seen and written', async () => {
    const { store } = bundle.installation.vault
    const [person, invite] = [await persons.find(store, olga.personId), await invites.find(store, inviteId)]
    if (!person || !invite) return expect.fail()
    const [seen, seenInvite] = [seenOfPerson(person), seenOfInvite(invite)]
    const change = { role_ADMIN: 'on', role_VIEWER: 'on', sees: 'some', entities: `${OURS}\n ${THEIRS.toUpperCase()},` }
    const rights = { roles: ['VIEWER', 'ADMIN'], entities: [OURS, THEIRS] }
    const one = `/people/${olga.personId}`
    const tries: [string, Record<string, string>, Record<string, unknown>][] = [
      [
        '/people/invite',
        inviting,
        {
          act: 'person.invite',
          subject: 'Nora',
          seen: null,
          parameters: { roles: ['VIEWER'], entities: null, ...KEY },
        },
      ],
      [
        `${one}/change`,
        { ...change, seen },
        { act: 'person.change', subject: olga.personId, seen, parameters: rights },
      ],
      [`${one}/link`, { ...KEY, seen }, { act: 'person.link', subject: olga.personId, seen, parameters: KEY }],
      [`${one}/revoke`, { seen }, { act: 'person.revoke', subject: olga.personId, seen, parameters: {} }],
      [
        `/people/invites/${inviteId}/revoke`,
        { seen: seenInvite },
        { act: 'invite.revoke', subject: inviteId, seen: seenInvite, parameters: {} },
      ],
    ]
    const viewer = await bundle.addPerson('reads', { roles: ['VIEWER'] })
    for (const [path, json, request] of tries) {
      for (const person of [olga, viewer]) {
        expect([path, (await begin(path, json, person)).status]).toEqual([path, 403])
        expect([path, (await begin(path, { seen: '' }, person)).status]).toEqual([path, 403])
        expect([path, (await get(path, person)).status]).toEqual([path, 403])
      }
      const begun = await begin(path, json)
      expect([path, begun.status]).toEqual([path, 200])
      expect(await pendingOf(begun)).toMatchObject({ ...request, reason: null, person_id: ada.personId })
      const page = await get(path)
      expect(page.status).toBe(200)
      expect(page.text).toContain(`name="seen" value="${json['seen']}"`)
      // Without the passkey nothing is sent, and what was written stays.
      const again = await bundle.call('POST', path, { cookie: ada.cookie, form: json })
      expect(again.status).toBe(403)
      if (json['name']) expect(again.text).toContain('value="Nora"')
      if (json['sees'] === 'some') expect(again.text).toContain(THEIRS.toUpperCase())
    }
  })

  it('says what is wrong with what was written', async () => {
    const wrong: [Record<string, string>, RegExp][] = [
      [{ name: ' ' }, /A name is/],
      [{ name: `card ${CARD}` }, /A name is/],
      [{ role_VIEWER: '' }, /at least one role/],
      [{ sees: '' }, /Choose which entities/],
      [{ sees: 'some' }, /Name the entities/],
      [{ sees: 'some', entities: 'all of them' }, /is a UUID/],
      [{ entities: OURS }, /chose all entities and named some/],
      [{ public_key: '' }, /needs scripts/],
      [{ lookup_hash: 'A' }, /needs scripts/],
      [{ reason: `customer ${CARD}` }, /could be a card number/],
    ]
    for (const [changed, words] of wrong) {
      const answer = await begin('/people/invite', { ...inviting, ...changed })
      expect([changed, answer.status]).toEqual([changed, 400])
      expect(answer.text).toMatch(words)
      expect(answer.text).not.toContain(CARD)
    }
  })

  it('is not filled in by a link', async () => {
    const query = 'name=Mallory&sees=all&role_ADMIN=on&entities=x'
    for (const path of ['/people/invite', `/people/${olga.personId}/change`])
      expect((await get(`${path}?${query}`)).text).toBe((await get(path)).text)
  })

  it('that needs a script says why, and names the command', async () => {
    for (const path of ['/people/invite', `/people/${olga.personId}/link`]) {
      const { text } = await get(path)
      expect(text).toMatch(/<noscript>.*made by a script in your browser, so that nobody here ever has it/s)
      expect(text).toMatch(/tokenmill person (invite NAME --roles VIEWER|link olga)/)
    }
  })

  it('offers neither to revoke the last ADMIN nor to let oneself in', async () => {
    expect((await get(`/people/${ada.personId}/revoke`)).text).toContain('This is the last administrator')
    const own = await get(`/people/${ada.personId}/link`)
    expect(own.text).toContain('Another administrator makes a new link for you.')
    for (const { text } of [own, await get(`/people/${ada.personId}/revoke`)])
      expect(text).not.toContain('<form class="act"')
  })

  it('has a page of its verdict, which shows the link where it works, and nowhere a secret', async () => {
    const verdictOf = async (verdict: object | null, request: object) => {
      const nonce = `${randomUUID().replaceAll('-', '').slice(0, 21)}A`
      await bundle.rows(
        `insert into tokenmill.pending_act (nonce, session_hash, request, expires_at, sent_at, verdict)
values ($1, $2, $3, now() + interval '1 minute', now(), $4)`,
        [
          nonce,
          ada.sessionHash,
          JSON.stringify({ ...request, person_id: ada.personId, reason: null }),
          verdict && JSON.stringify(verdict),
        ],
      )
      return get(`/acts/${nonce}`)
    }
    const parameters = { roles: ['VIEWER'], entities: null, ...KEY }
    const invite = { act: 'person.invite', subject: 'canary-invite', parameters }
    const done = await verdictOf({ done: true, auditId: null }, invite)
    for (const words of [
      'Done.',
      'The link for canary-invite',
      'It is shown only now',
      'works once, until',
      'presses <em>Continue</em>',
    ])
      expect(done.text).toContain(words)
    expect(done.text).toContain(`data-link-of="${KEY.lookup_hash}" data-works="yes"`)
    const link = { act: 'person.link', subject: olga.personId, parameters: KEY }
    expect((await verdictOf({ done: true, auditId: null }, link)).text).toContain('The link for olga')
    const unknown = await verdictOf({ done: null }, invite)
    expect(unknown.text).toMatch(/Not known\..*not known whether it works/s)
    const refused = await verdictOf({ done: false, reason: 'person_exists', text: 'There is one.' }, invite)
    for (const { text } of [unknown, refused]) {
      expect(text).toContain('data-works="no"')
      expect(text).not.toContain('shown only now')
    }
    expect((await verdictOf(null, invite)).text).not.toContain('data-link-of')
    const change = { act: 'person.change', subject: olga.personId, parameters: { roles: ['ADMIN'], entities: [OURS] } }
    const changed = await verdictOf({ done: false, reason: 'last_admin', text: 'Nobody else.' }, change)
    expect(changed.text).toMatch(/Roles now.*OPERATOR.*Roles asked for.*ADMIN/s)
    const ended = await verdictOf(
      { done: true, auditId: null },
      { act: 'invite.revoke', subject: inviteId, parameters: {} },
    )
    expect(ended.text).toMatch(/Invite of.*canary-invite/s)
    const revoked = await verdictOf(
      { done: true, auditId: null },
      { act: 'person.revoke', subject: olga.personId, parameters: {} },
    )
    expect(revoked.text).toContain('Revoke a person')
    for (const { text } of [done, unknown, refused, changed, ended, revoked]) expect(text).not.toContain(secret.secret)
  })
})
