// An invite that names an account at the OpenID provider, up to the passkey: the form asks for it only where there is a provider, and
// that one alone. What a worker does with it is in test/workers/act/people-acts.test.ts.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newSecret } from '../../../../src/acts/person.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, type Person } from '../bundle.ts'
import { type OpenIdBundle, openOpenIdBundle } from '../openid/bundle.ts'

const CARD = '4111111111111111'
const HOSTILE = `"><img src=x onerror=alert(1)>{{7*7}}`
const { lookupHash, publicKey } = newSecret().key
const KEY = { lookup_hash: lookupHash.toString('base64url'), public_key: publicKey.toString('base64url') }
const INVITING = { name: 'Nora', role_VIEWER: 'on', sees: 'all', entities: '', seen: '', reason: '', ...KEY }

let bundle: OpenIdBundle
let plain: ConsoleBundle
let ada: Person
let adaOfPlain: Person
beforeAll(async () => {
  ;[bundle, plain] = await Promise.all([openOpenIdBundle(), openConsoleBundle()])
  ada = await withPasskey(bundle, 'ada')
  adaOfPlain = await withPasskey(plain, 'ada')
})
afterAll(() => Promise.all([bundle?.close(), plain?.close()]))

async function withPasskey(on: ConsoleBundle, name: string, options: Parameters<ConsoleBundle['addPerson']>[1] = {}) {
  const person = await on.addPerson(name, options)
  await on.rows(
    `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count)
values ($1, $2, '{}', 'ES256', 'localhost', 0)`,
    [`passkey-${name}`, person.personId],
  )
  return person
}
const begin = (json: Record<string, string>, { cookie } = ada, on: ConsoleBundle = bundle) =>
  on.call('POST', '/people/invite/begin', { cookie, json: { ...INVITING, ...json } })
const parametersOf = async ({ text }: { text: string }, on: ConsoleBundle = bundle) => {
  const { nonce } = JSON.parse(text) as { nonce: string }
  const [row] = await on.rows<{ parameters: Record<string, unknown> }>(
    `select request->'parameters' as parameters from tokenmill.pending_act where nonce = $1`,
    [nonce],
  )
  return row?.parameters
}

it('is asked for where there is a provider, and nowhere else', async () => {
  const page = await bundle.call('GET', '/people/invite', { cookie: ada.cookie })
  expect(page.text).toContain('name="account"')
  expect(page.text).toContain(bundle.provider.issuer)
  const without = await plain.call('GET', '/people/invite', { cookie: adaOfPlain.cookie })
  expect(without.text).not.toContain('name="account"')
  const refused = await begin({ account: 'somebody' }, adaOfPlain, plain)
  expect(refused.status).toBe(400)
  expect(refused.text).toContain('OpenID is not set up')
  expect((await begin({ account: ' ' }, adaOfPlain, plain)).status).toBe(200)
})

it('is signed as the issuer of the settings and the subject that was written, or not at all', async () => {
  const { issuer } = bundle.provider
  const rights = { roles: ['VIEWER'], entities: null, ...KEY }
  const named = await begin({ account: ' nora-at-keycloak ', issuer: 'https://thief.example.com' })
  expect(await parametersOf(named)).toEqual({ ...rights, account: { issuer, subject: 'nora-at-keycloak' } })
  for (const none of ['', '   ']) expect(await parametersOf(await begin({ account: none }))).toEqual(rights)
  const again = await bundle.call('POST', '/people/invite', {
    cookie: ada.cookie,
    form: { ...INVITING, account: HOSTILE },
  })
  // Without the passkey nothing is sent, and what was written stays, as a text.
  expect(again.status).toBe(403)
  expect(again.text).toContain('onerror=alert(1)')
  expect(again.text).not.toContain('<img')
  const named2 = await bundle.call('POST', '/people/invite', {
    cookie: ada.cookie,
    form: { ...INVITING, account: 'nora-1' },
  })
  expect(named2.text).toContain(`tokenmill person invite Nora --roles VIEWER --issuer ${issuer} --subject nora-1`)
})

it('is refused in words if it can be no subject, or holds digits that could be a card number', async () => {
  for (const account of ['x\ny', 'x\u0000y', 'é', 'x'.repeat(256)]) {
    const answer = await begin({ account })
    expect([account, answer.status]).toEqual([account, 400])
    expect(answer.text).toContain('1 to 255 printable ASCII characters')
  }
  for (const account of [CARD, `auth|${CARD}`]) {
    const answer = await begin({ account })
    expect([account, answer.status]).toEqual([account, 400])
    expect(answer.text).toMatch(/could be a card number.*connects the account/)
    expect(answer.text).not.toContain(CARD)
  }
})

it('is for an ADMIN for all entities alone', async () => {
  const roles = [
    [{ roles: ['OPERATOR'] }, 403],
    [{ roles: ['VIEWER'] }, 403],
    [{ roles: ['ADMIN'], entities: [OURS] }, 404],
  ] as const
  for (const [options, status] of roles) {
    const person = await withPasskey(bundle, `${options.roles}-${status}`, options)
    expect([options, (await begin({ account: 'somebody' }, person)).status]).toEqual([options, status])
  }
})

it('is not filled in by a link', async () => {
  const get = (path: string) => bundle.call('GET', path, { cookie: ada.cookie })
  expect((await get('/people/invite?account=mallory')).text).toBe((await get('/people/invite')).text)
})

it('stands on the page of the verdict as a text', async () => {
  const verdictOf = async (subject: string) => {
    const nonce = `${randomUUID().replaceAll('-', '').slice(0, 21)}A`
    const account = { issuer: bundle.provider.issuer, subject }
    const request = {
      act: 'person.invite',
      subject: 'Nora',
      person_id: ada.personId,
      reason: null,
      parameters: { roles: ['VIEWER'], entities: null, ...KEY, ...(subject !== '' && { account }) },
    }
    await bundle.rows(
      `insert into tokenmill.pending_act (nonce, session_hash, request, expires_at, sent_at, verdict)
values ($1, $2, $3, now() + interval '1 minute', now(), '{"done": true, "auditId": null}')`,
      [nonce, ada.sessionHash, JSON.stringify(request)],
    )
    return (await bundle.call('GET', `/acts/${nonce}`, { cookie: ada.cookie })).text
  }
  expect(await verdictOf('nora-at-keycloak')).toContain('nora-at-keycloak')
  expect(await verdictOf('')).not.toContain('<dt>Account</dt>')
  const hostile = await verdictOf(HOSTILE)
  expect(hostile).toContain('onerror=alert(1)')
  expect(hostile).not.toContain('<img')
})
