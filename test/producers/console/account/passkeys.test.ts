// The routes of a person's own passkeys, by direct requests: nobody meets the passkeys of others, and a begun act is one session's.
// browser.test.ts adds and removes a passkey with real touches.
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeCookie } from '../../../../producers/console/server/cookie.ts'
import * as sessions from '../../../../src/store/console/sessions.ts'
import { type Answer, type ConsoleBundle, openConsoleBundle, type Person } from '../bundle.ts'

const MADE = { credential_id: 'bmV3', client_data_json: 'e30', attestation_object: 'oA' }
const handleOf = (credentialId: string) => createHash('sha256').update(credentialId).digest('hex').slice(0, 16)

let bundle: ConsoleBundle
let ada: Person
let olga: Person
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada', { roles: ['VIEWER'] })
  olga = await bundle.addPerson('olga')
  await give(ada, 'ada-1')
  await give(ada, 'ada-2')
  await give(olga, 'olga-1')
})
afterAll(() => bundle?.close())

const give = ({ personId }: Person, credentialId: string, rpId = 'localhost') =>
  bundle.rows(
    `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count)
values ($1, $2, '{}', 'ES256', $3, 0)`,
    [credentialId, personId, rpId],
  )
const post = ({ cookie }: Person, path: string, json: unknown = {}) => bundle.call('POST', path, { cookie, json })
const get = ({ cookie }: Person, path: string) => bundle.call('GET', path, { cookie })
const told = ({ status, text }: Answer) => ({ status, text })

it('lists the passkeys of the person alone', async () => {
  const { text } = await get(ada, '/passkeys')
  expect(text.match(/<tr><td>/g)).toHaveLength(2)
  expect(text).not.toContain('olga-1')
  const own = await get(olga, '/passkeys')
  expect(own.text).toContain('the last one stays')
  expect(own.text).not.toContain('Remove…')
})

it('answers for the passkey of another person as for one that does not exist', async () => {
  for (const step of ['', '/begin'])
    for (const method of ['GET', 'POST'] as const) {
      const ask = (handle: string) =>
        bundle.call(method, `/passkeys/${handle}/remove${step}`, {
          cookie: ada.cookie,
          ...(method === 'POST' && { json: {} }),
        })
      const missing = await ask('0123456789abcdef')
      expect(missing.status).toBe(404)
      expect(told(await ask(handleOf('olga-1')))).toEqual(told(missing))
    }
})

it('asks for the touch of another passkey, of this console’s domain, to remove one', async () => {
  await give(ada, 'ada-elsewhere', 'other.example.com')
  const begun = JSON.parse((await post(ada, `/passkeys/${handleOf('ada-1')}/remove/begin`)).text)
  expect(begun.get.allowCredentials).toEqual(['ada-2'])
  await bundle.rows(`delete from tokenmill.person_credential where credential_id = 'ada-elsewhere'`)
  expect((await post(olga, `/passkeys/${handleOf('olga-1')}/remove/begin`)).status).toBe(404)
  expect((await get(olga, `/passkeys/${handleOf('olga-1')}/remove`)).text).toContain('so it stays')
})

it('takes a new passkey once, in time, and in the session that began', async () => {
  const begin = async () => JSON.parse((await post(ada, '/passkeys/add/begin')).text)
  const begun = await begin()
  expect(begun.create).toMatchObject({ excludeCredentials: ['ada-1', 'ada-2'], rp: { id: 'localhost' } })
  const { nonce } = begun
  expect((await post(olga, '/passkeys/add/touch', { nonce, made: MADE })).status).toBe(403)
  for (const made of [{}, { ...MADE, more: 'x' }, { ...MADE, credential_id: '<b>' }])
    expect((await post(ada, '/passkeys/add/touch', { nonce, made })).status).toBe(403)
  const touch = await post(ada, '/passkeys/add/touch', { nonce, made: MADE })
  const asked = JSON.parse(touch.text)
  expect(asked.get.allowCredentials).toEqual(['ada-1', 'ada-2'])
  // The touch covers the new passkey: its challenge is another one.
  expect(asked.get.challenge).not.toBe(begun.create.challenge)
  expect((await post(ada, '/passkeys/add/touch', { nonce, made: MADE })).status).toBe(403)
  const late = await begin()
  await bundle.rows('update tokenmill.pending_act set expires_at = now() where nonce = $1', [late.nonce])
  expect((await post(ada, '/passkeys/add/touch', { nonce: late.nonce, made: MADE })).status).toBe(403)
  // An act of another kind takes none.
  const other = JSON.parse((await post(ada, `/passkeys/${handleOf('ada-1')}/remove/begin`)).text)
  expect((await post(ada, '/passkeys/add/touch', { nonce: other.nonce, made: MADE })).status).toBe(403)
})

it('sends nothing without a touch', async () => {
  const { nonce } = JSON.parse((await post(ada, '/passkeys/add/begin')).text)
  const form = { nonce, proof: '' }
  for (const path of ['/passkeys/add', `/passkeys/${handleOf('ada-1')}/remove`])
    expect((await bundle.call('POST', path, { cookie: ada.cookie, form })).status).toBe(403)
  expect((await get(ada, `/passkeys/acts/${nonce}`)).status).toBe(404)
})

it('ends the sessions that a passkey began as soon as it is revoked, and no others', async () => {
  const { store } = bundle.installation.vault
  const eva = await bundle.addPerson('eva')
  await give(eva, 'eva-1')
  await give(eva, 'eva-2')
  const signedInWith = async (credentialId: string): Promise<Person> => {
    const { value, hash } = makeCookie()
    const { personId } = eva
    await sessions.insert(store, { sessionHash: hash, personId, credentialId, address: '127.0.0.1', isLocal: false })
    return { personId, cookie: `tokenmill-console=${value}`, sessionHash: hash }
  }
  const [first, second] = [await signedInWith('eva-1'), await signedInWith('eva-2')]
  const hashes = [eva, first, second].map(({ sessionHash }) => sessionHash)
  const live = async () => (await sessions.listLive(store, hashes)).length
  expect([await live(), (await get(second, '/sessions')).status]).toEqual([3, 200])
  await bundle.rows(`update tokenmill.person_credential set revoked_at = now() where credential_id = 'eva-2'`)
  expect((await get(second, '/sessions')).status).toBe(303)
  // Whoever had proved the passkey just before it was revoked.
  expect((await get(await signedInWith('eva-2'), '/sessions')).status).toBe(303)
  const listed = await get(first, '/sessions')
  expect([listed.status, listed.text.match(/<tr><td>/g)?.length, await live()]).toEqual([200, 2, 2])
  // A session of a release that didn't write the passkey.
  expect((await get(eva, '/sessions')).status).toBe(200)
})
