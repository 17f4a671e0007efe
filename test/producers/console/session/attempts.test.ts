// How often somebody may fail to sign in: an address that many people share, behind a proxy, locks none of them out.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { invitePerson } from '../../../../src/acts/person.ts'
import { lookupOf } from '../../../../src/vault/passkey/invite-key.ts'
import { type ConsoleBundle, openConsoleBundle } from '../bundle.ts'

let bundle: ConsoleBundle
beforeAll(async () => {
  bundle = await openConsoleBundle()
})
afterAll(() => bundle?.close())

const post = (path: string, body: object) => bundle.call('POST', path, body)
const proofOf = (id: string) =>
  JSON.stringify({
    credential_id: id,
    client_data_json: Buffer.from('{"challenge":"AA"}').toString('base64url'),
    authenticator_data: 'AA',
    signature: 'AA',
  })

it('gives challenges to everybody, after many that were only begun or failed', async () => {
  for (let n = 0; n < 65; n++) await post('/sign-in/begin', { json: {} })
  expect((await post('/sign-in/begin', { json: {} })).status).toBe(200)
  for (let n = 0; n < 65; n++) await post('/sign-in', { form: { proof: '' } })
  expect((await post('/sign-in', { form: { proof: '' } })).status).toBe(429)
  expect((await post('/sign-in/begin', { json: {} })).status).toBe(200)
})

it('answers an attempt with another passkey as a failure of its own, and an eleventh with one as too many', async () => {
  const id = randomBytes(16).toString('base64url')
  const answers = []
  for (let n = 0; n < 11; n++) answers.push((await post('/sign-in', { form: { proof: proofOf(id) } })).text)
  expect(answers.at(-1)).toContain('Too many attempts')
})

it('takes a right link, however many wrong ones came from its address', async () => {
  for (let n = 0; n < 65; n++) await post('/welcome/begin', { json: { lookup: 'x'.repeat(43) } })
  const wrong = await post('/welcome/begin', { json: { lookup: 'x'.repeat(43) } })
  expect(wrong.status).toBe(429)
  const by = { actor: { kind: 'machine' as const, id: 'test' }, reason: undefined }
  const who = { name: 'bea', roles: ['VIEWER' as const], entities: null }
  const invited = await invitePerson({ ...bundle.installation.vault, rpId: 'localhost' }, who, by, Date.now())
  const secret = 'done' in invited ? invited.done.secret : ''
  expect((await post('/welcome/begin', { json: { lookup: lookupOf(secret) } })).status).toBe(200)
})
