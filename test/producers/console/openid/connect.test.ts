// A person connects an account in a session: the way there and back, and what of it another session or person meets.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeCookie } from '../../../../producers/console/server/cookie.ts'
import * as sessions from '../../../../src/store/console/sessions.ts'
import type { Person } from '../bundle.ts'
import { type OpenIdBundle, openOpenIdBundle, type Visited, type Visitor } from './bundle.ts'

const HOSTILE = `<img/src=x/onerror="alert(1)">`

let bundle: OpenIdBundle
let ada: Person
let olga: Person
beforeAll(async () => {
  bundle = await openOpenIdBundle()
  bundle.provider.open(`${bundle.origin}/openid/callback`)
  ada = await bundle.addPerson('ada', { roles: ['VIEWER'] })
  olga = await bundle.addPerson('olga')
})
afterAll(() => bundle?.close())

const is = (subject: string) => {
  bundle.provider.account = { subject, email: '' }
}
const give = ({ personId }: Person, credentialId: string = randomUUID(), rpId = 'localhost') =>
  bundle.rows(
    `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count)
values ($1, $2, '{}', 'ES256', $3, 0)`,
    [credentialId, personId, rpId],
  )
const at = ({ cookie }: Person): Visitor => {
  const visitor = bundle.openVisitor()
  const [name = '', value = ''] = cookie.split('=')
  visitor.cookies.set(name, value)
  return visitor
}
const begin = ({ cookie }: Pick<Person, 'cookie'>, json: Record<string, string>) =>
  bundle.call('POST', '/identities/connect/begin', { cookie, json })
/** What the form of a page sends. */
const formOf = ({ text }: Visited) => ({ flow: /name="flow" value="([^"]*)"/.exec(text)?.[1] ?? '' })
/** The account that the act covers. */
const asked = async ({ text }: { text: string }) => {
  const [pending] = await bundle.rows<{ request: Record<string, unknown> }>(
    'select request from tokenmill.pending_act where nonce = $1',
    [JSON.parse(text).nonce],
  )
  return pending?.request['parameters']
}

it('finds an account, shows it, and asks for a touch of the person’s passkey that covers it', async () => {
  is(HOSTILE)
  await give(ada, 'ada-1')
  const visitor = at(ada)
  expect((await visitor.get('/identities/connect')).status).toBe(404)
  const { callback } = await visitor.leave({ path: '/identities/find' })
  const page = await visitor.get(callback)
  expect(page).toMatchObject({ status: 200, url: `${bundle.origin}/identities/connect` })
  expect(page.text).toContain('Connect this account')
  expect(page.text).toContain(bundle.provider.issuer)
  expect(page.text).toContain('&#60;img/src')
  expect(page.text).not.toContain('<img')
  const begun = JSON.parse((await begin(ada, formOf(page))).text)
  expect(begun.get).toMatchObject({ allowCredentials: ['ada-1'], rpId: 'localhost' })
  const [pending] = await bundle.rows<{ request: object }>(
    'select request from tokenmill.pending_act where nonce = $1',
    [begun.nonce],
  )
  expect(pending?.request).toMatchObject({
    act: 'identity.connect',
    subject: ada.personId,
    person_id: ada.personId,
    seen: null,
    parameters: { issuer: bundle.provider.issuer, subject: HOSTILE },
  })
  // Without a touch nothing is sent, and nothing is connected by the way there and back.
  const form = { nonce: begun.nonce, proof: '' }
  expect((await bundle.call('POST', '/identities/connect', { cookie: ada.cookie, form })).status).toBe(403)
  expect(await bundle.rows('select from tokenmill.person_identity')).toEqual([])
})

it('is one session’s: no other meets what it found', async () => {
  is('found-by-ada')
  const visitor = at(ada)
  const { callback } = await visitor.leave({ path: '/identities/find' })
  // The same browser, in which somebody else has signed in meanwhile.
  const [name = '', value = ''] = olga.cookie.split('=')
  visitor.cookies.set(name, value)
  expect((await visitor.get(callback)).status).toBe(403)
  expect((await at(olga).get('/identities/connect')).status).toBe(404)
  is('found-again')
  const again = at(ada)
  const form = formOf(await again.get((await again.leave({ path: '/identities/find' })).callback))
  expect((await begin(olga, form)).status).toBe(403)
  const signedOut = at(ada)
  const second = await signedOut.leave({ path: '/identities/find' })
  signedOut.cookies.delete(name)
  expect((await signedOut.get(second.callback)).status).toBe(403)
  // A sign-in that ends in such a flow would be another one than the person began.
  expect(signedOut.cookies.has(name)).toBe(false)
})

it('connects the account that the page showed, whichever the session finds after it', async () => {
  const { issuer } = bundle.provider
  const find = async (subject: string) => {
    is(subject)
    const visitor = at(ada)
    return formOf(await visitor.get((await visitor.leave({ path: '/identities/find' })).callback))
  }
  const shown = await find('shown-to-ada')
  // With the cookie of this session alone, or in another tab.
  const later = await find('a-thiefs')
  expect(await asked(await begin(ada, shown))).toEqual({ issuer, subject: 'shown-to-ada' })
  expect(await asked(await begin(ada, later))).toEqual({ issuer, subject: 'a-thiefs' })
  for (const form of [{}, { flow: '' }, { flow: `${shown.flow}A` }, { flow: 'A'.repeat(43) }])
    expect((await begin(ada, form)).status).toBe(403)
})

it('says in the session that the provider did not let the person in', async () => {
  bundle.provider.account = null
  const visitor = at(ada)
  const end = await visitor.get((await visitor.leave({ path: '/identities/find' })).callback)
  expect(end.status).toBe(403)
  expect(end.text).toContain('<h1>Not connected</h1><p>Keycloak did not let you in')
  expect(end.text).toContain('<span class="person">ada</span>')
})

it('offers no account of another person, and no identity of another person for an end', async () => {
  is('olga-there')
  const identity = await bundle.bind(olga, 'olga-there')
  const visitor = at(ada)
  const taken = await visitor.get((await visitor.leave({ path: '/identities/find' })).callback)
  expect(taken.text).toContain('connected with another person')
  expect(taken.text).not.toContain('Connect this account')
  const own = await at(olga).get('/passkeys')
  expect(own.text).toContain('olga-there')
  expect((await at(ada).get('/passkeys')).text).not.toContain('olga-there')
  for (const step of ['', '/begin'])
    for (const method of ['GET', 'POST'] as const) {
      const ask = async (id: string) => {
        const json = method === 'POST' ? { json: {} } : {}
        const path = `/identities/${id}/disconnect${step}`
        const { status, text } = await bundle.call(method, path, { cookie: ada.cookie, ...json })
        return { status, text }
      }
      const missing = await ask(randomUUID())
      expect(missing.status).toBe(404)
      expect(await ask(identity)).toEqual(missing)
    }
})

it('lists the newest accounts of a person, and each can be ended', async () => {
  const many = await bundle.addPerson('many', { roles: ['VIEWER'] })
  await give(many)
  const first = await bundle.bind(many, 'the-first')
  await bundle.rows(
    `insert into tokenmill.person_identity (identity_id, person_id, issuer, subject, created_at)
select gen_random_uuid(), $1, $2, 'later-' || n, now() + make_interval(secs => n) from generate_series(1, 50) as n`,
    [many.personId, bundle.provider.issuer],
  )
  const { text } = await at(many).get('/passkeys')
  expect(text).toContain('later-50')
  expect(text).not.toContain('the-first')
  expect(text).toMatch(/The newest 50; .*tokenmill person list --json.* lists all/)
  const page = await at(many).get(`/identities/${first}/disconnect`)
  expect(page.text).toContain('the-first')
  expect((await at(many).get('/identities/x/disconnect')).status).toBe(404)
})

it('shows no digits of an account that could be a card number', async () => {
  const card = '4111111111111111'
  const cora = await bundle.addPerson('cora', { roles: ['VIEWER'] })
  await give(cora)
  is(card)
  const visitor = at(cora)
  const page = await visitor.get((await visitor.leave({ path: '/identities/find' })).callback)
  expect(page.text).toContain('****************')
  const { nonce } = JSON.parse((await begin(cora, formOf(page))).text)
  await bundle.rows('update tokenmill.pending_act set sent_at = now() where nonce = $1', [nonce])
  const identity = await bundle.bind(cora, card)
  const pages = [page.text]
  for (const path of ['/passkeys', `/identities/${identity}/disconnect`, `/acts/${nonce}`]) {
    const seen = await visitor.get(path)
    expect([path, seen.status]).toEqual([path, 200])
    pages.push(seen.text)
  }
  expect(pages.join()).not.toContain(card)
})

it('leaves a person without a passkey looking, and says how to get one', async () => {
  const eva = await bundle.addPerson('eva')
  await bundle.bind(eva, 'eva-there')
  await give(eva, 'eva-elsewhere', 'other.example.com')
  const no = await bundle.addBatch({ batchId: 'seen-by-eva' })
  is('eva-there')
  const visitor = bundle.openVisitor()
  await visitor.signIn()
  for (const path of [`/batches/${no}/cancel`, '/passkeys/add', '/passkeys'])
    expect((await visitor.get(path)).text, path).toContain(
      path === '/passkeys' ? 'other.example.com' : 'person link eva',
    )
  const cookie = `tokenmill-console=${visitor.cookies.get('tokenmill-console')}`
  const json = { seen: 'RUNNING', reason: '' }
  const begun = await bundle.call('POST', `/batches/${no}/cancel/begin`, { cookie, json })
  expect([begun.status, begun.text]).toEqual([403, expect.stringContaining('no passkey')])
  // A passkey for this console, and the same session acts.
  await give(eva)
  expect((await bundle.call('POST', `/batches/${no}/cancel/begin`, { cookie, json })).status).toBe(200)
  expect((await visitor.get(`/batches/${no}/cancel`)).text).not.toContain('person link')
})

it('ends the sessions of a provider that is another one now, or none, and no others', async () => {
  const { store } = bundle.installation.vault
  const mona = await bundle.addPerson('mona')
  const open = async (issuer: string) => {
    const identityId = await bundle.bind(mona, randomUUID(), issuer)
    const { value, hash } = makeCookie()
    const { personId } = mona
    const of = { sessionHash: hash, personId, credentialId: null, identityId, address: '127.0.0.1', isLocal: false }
    await sessions.insert(store, of)
    return { ...mona, cookie: `tokenmill-console=${value}`, sessionHash: hash }
  }
  const [here, there] = [await open('https://here.example'), await open('https://there.example')]
  const live = async () =>
    (
      await sessions.listLive(
        store,
        [mona, here, there].map(({ sessionHash }) => sessionHash),
      )
    ).length
  expect(await live()).toBe(3)
  await sessions.revokeOfOthers(store, 'https://here.example')
  expect(await live()).toBe(2)
  await sessions.revokeOfOthers(store, null)
  expect(await live()).toBe(1)
  expect((await at(mona).get('/sessions')).status).toBe(200)
})
