// Sign-in by OpenID against a real provider over HTTP: what is believed, what isn't, and what is left of it.
import { randomUUID } from 'node:crypto'
import fs from 'node:fs'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { steady, until } from '../../../support/until.ts'
import type { Person } from '../bundle.ts'
import { NAME, type OpenIdBundle, openOpenIdBundle, type Visitor } from './bundle.ts'
import type { Tamper } from './provider.ts'

let bundle: OpenIdBundle
let ada: Person
/** Ada's account at the provider. */
const SUBJECT = `subject-${randomUUID()}`
const EMAIL = 'ada@example.com'
let logged = ''
beforeAll(async () => {
  // The log goes to standard error.
  const { writeSync } = fs
  vi.spyOn(fs, 'writeSync').mockImplementation(((fd: number, text: string, ...more: never[]) => {
    if (fd !== 2) return writeSync(fd, text, ...more)
    logged += text
    return Buffer.byteLength(text)
  }) as typeof fs.writeSync)
  bundle = await openOpenIdBundle({ TOKENMILL_LOG_LEVEL: 'info' })
  ada = await bundle.addPerson('ada', { roles: ['VIEWER'] })
  await bundle.bind(ada, SUBJECT)
})
afterAll(async () => {
  await bundle?.close()
  vi.restoreAllMocks()
})
const reset = () => {
  bundle.provider.tamper = undefined
  bundle.provider.instead = undefined
  bundle.provider.account = { subject: SUBJECT, email: EMAIL }
}
afterEach(reset)

/**
 * A test of sign-ins. It is done anew where this process, which is console and provider, stood still for about as long as the
 * console waits for the provider. `work` gets the number of the try.
 */
function signsIn(name: string, work: (n: number) => Promise<void>): void {
  it(name, () => {
    let n = 0
    return steady(3_000, () => {
      reset()
      n += 1
      return work(n)
    })
  })
}

const session = 'tokenmill-console'
const isIn = async (visitor: Visitor) => (await visitor.get('/sessions')).url.endsWith('/sessions')

it('starts while the provider is away, says so, and goes on with passkeys', async () => {
  const visitor = bundle.openVisitor()
  expect((await visitor.get('/sign-in')).text).toContain(`Sign in with ${NAME}`)
  const gone = await visitor.post('/openid/begin')
  expect(gone).toMatchObject({ status: 503 })
  expect(gone.text).toContain(`${NAME} does not answer as it should.`)
  const page = await visitor.get('/sign-in')
  expect(page.text).toMatch(/Keycloak did not answer as it should at <time datetime="/)
  expect(page.text).toContain('Sign in with a passkey')
  bundle.provider.open(`${bundle.origin}/openid/callback`)
  await until(async () => (await visitor.post('/openid/begin')).status === 200, { what: 'an answer of the provider' })
})

signsIn('signs in the person of the account, with a new cookie, and leads to the page that was asked for', async () => {
  const visitor = bundle.openVisitor()
  visitor.cookies.set(session, ada.cookie.split('=')[1] ?? '')
  const page = await visitor.post('/openid/begin', { to: '/batches' })
  expect(page.text).toContain('http-equiv="refresh"')
  expect(page.text).toContain('code_challenge_method=S256')
  expect(page.text).not.toMatch(/email|profile/)
  const end = await visitor.signIn('/batches')
  expect(end).toMatchObject({ status: 200, url: `${bundle.origin}/batches` })
  expect(end.text).toContain('<span class="person">ada</span>')
  expect(visitor.cookies.get(session)).not.toBe(ada.cookie.split('=')[1])
  expect([...visitor.cookies.keys()].filter(name => name.includes('-openid'))).toEqual([])
  // The former session is over, and the new one says how it began.
  const former = await bundle.call('GET', '/sessions', { cookie: ada.cookie })
  expect(former.status).toBe(303)
  const own = await visitor.get('/sessions')
  expect(own.text).toContain(`<td>${NAME}</td>`)
  for (const to of ['https://evil.example', '//evil.example', '/sign-out', '/\\evil'])
    expect(await bundle.openVisitor().signIn(to)).toMatchObject({ url: `${bundle.origin}/now` })
})

signsIn('uses a flow once, in the browser that began it, and with its state', async () => {
  const visitor = bundle.openVisitor()
  const { callback } = await visitor.leave()
  const cookies = new Map(visitor.cookies)
  const other = bundle.openVisitor()
  expect(await other.get(callback)).toMatchObject({ status: 403, url: callback })
  // A stranger's callback, in a browser that began a flow of its own.
  await other.leave()
  expect(await other.get(callback)).toMatchObject({ status: 403 })
  const wrongState = callback.replace(/state=[^&]+/, `state=${'A'.repeat(43)}`)
  for (const wrong of [wrongState, callback.replace(/state=[^&]+&?/, ''), `${callback}&state=x`]) {
    const stranger = bundle.openVisitor()
    for (const [name, value] of cookies) stranger.cookies.set(name, value)
    expect((await stranger.get(wrong)).status).toBe(403)
  }
  expect(await visitor.get(callback)).toMatchObject({ status: 200 })
  expect(await isIn(visitor)).toBe(true)
  const again = bundle.openVisitor()
  for (const [name, value] of cookies) again.cookies.set(name, value)
  const replayed = await again.get(callback)
  expect(replayed).toMatchObject({ status: 403 })
  expect(replayed.text).toContain('Begin again.')
  expect(await isIn(again)).toBe(false)
  const late = bundle.openVisitor()
  const begun = await late.leave()
  await bundle.rows(`update tokenmill.openid_flow set expires_at = now() where used_at is null`)
  expect((await late.get(begun.callback)).status).toBe(403)
})

signsIn('believes no answer of another issuer, with another code, or that repeats itself', async () => {
  const changes: [string, (callback: string) => string][] = [
    ['another issuer', text => text.replace(/iss=[^&]+/, 'iss=https%3A%2F%2Fevil.example')],
    ['no issuer', text => text.replace(/&?iss=[^&]+/, '')],
    ['another code', text => text.replace(/code=[^&]+/, 'code=stolen')],
    ['two codes', text => `${text}&code=stolen`],
    ['no code', text => text.replace(/code=[^&]+&?/, '')],
  ]
  for (const [what, change] of changes) {
    const visitor = bundle.openVisitor()
    const { callback } = await visitor.leave()
    expect((await visitor.get(change(callback))).status, what).toBe(403)
    expect(await isIn(visitor), what).toBe(false)
  }
})

signsIn('believes no ID token that is not for this sign-in', async () => {
  const now = () => Math.floor(Date.now() / 1000)
  const tries: [string, Tamper][] = [
    ['another nonce', ({ claims }) => Object.assign(claims, { nonce: 'another' })],
    ['no nonce', ({ claims }) => delete claims['nonce']],
    ['another client', ({ claims }) => Object.assign(claims, { aud: 'another' })],
    ['two clients', ({ claims }) => Object.assign(claims, { aud: ['another', claims['aud']], azp: 'another' })],
    ['another issuer', ({ claims }) => Object.assign(claims, { iss: 'https://evil.example' })],
    ['expired', ({ claims }) => Object.assign(claims, { iat: now() - 30, exp: now() - 3_000 })],
    ['of before', ({ claims }) => Object.assign(claims, { iat: now() - 3_600 })],
    ['of the future', ({ claims }) => Object.assign(claims, { iat: now() + 3_600, exp: now() + 7_200 })],
    ['no subject', ({ claims }) => delete claims['sub']],
    ['a subject with a line break', ({ claims }) => Object.assign(claims, { sub: `${SUBJECT}\n` })],
    ['unsigned', ({ header }) => Object.assign(header, { alg: 'none' })],
    ['signed by a secret', ({ header }) => Object.assign(header, { alg: 'HS256' })],
    ['of an unknown key', ({ header }) => Object.assign(header, { kid: 'another' })],
    ['signed by another key', token => Object.assign(token, { isForged: true })],
  ]
  for (const [what, tamper] of tries) {
    bundle.provider.tamper = tamper
    const visitor = bundle.openVisitor()
    const end = await visitor.signIn()
    expect(end.status, what).toBe(403)
    expect(end.text, what).toContain('could not be believed')
    expect(await isIn(visitor), what).toBe(false)
  }
  // What isn't changed is believed on the same way.
  bundle.provider.tamper = () => {}
  expect((await bundle.openVisitor().signIn()).status).toBe(200)
})

signsIn('knows an account by issuer and subject alone, and answers for all others alike', async n => {
  const eva = await bundle.addPerson(`eva${n}`)
  const identity = await bundle.bind(eva, `eva-there-${n}`)
  await bundle.bind(await bundle.addPerson(`foreign${n}`), `foreign-there-${n}`, 'https://another.example')
  const revoked = await bundle.addPerson(`revoked${n}`)
  await bundle.bind(revoked, `revoked-there-${n}`)
  await bundle.rows('update tokenmill.person set revoked_at = now() where person_id = $1', [revoked.personId])
  const texts = new Set<string>()
  const refused = async (subject: string) => {
    // The e-mail is that of somebody who is connected.
    bundle.provider.account = { subject, email: EMAIL }
    const end = await bundle.openVisitor().signIn()
    expect(end.status, subject).toBe(403)
    texts.add(end.text)
  }
  for (const subject of ['unknown', `foreign-there-${n}`, `revoked-there-${n}`, SUBJECT.toUpperCase(), EMAIL])
    await refused(subject)
  bundle.provider.account = { subject: `eva-there-${n}`, email: 'eva@example.com' }
  const visitor = bundle.openVisitor()
  expect((await visitor.signIn()).text).toContain(`<span class="person">eva${n}</span>`)
  // Disconnected: the session is over at once, and the account signs in no more.
  await bundle.rows('update tokenmill.person_identity set revoked_at = now() where identity_id = $1', [identity])
  expect(await isIn(visitor)).toBe(false)
  await refused(`eva-there-${n}`)
  expect(texts.size).toBe(1)
  expect([...texts].join()).not.toContain('@')
})

signsIn('ends the sessions of a revoked person', async n => {
  const olga = await bundle.addPerson(`olga${n}`)
  await bundle.bind(olga, `olga-there-${n}`)
  bundle.provider.account = { subject: `olga-there-${n}`, email: '' }
  const visitor = bundle.openVisitor()
  await visitor.signIn()
  expect(await isIn(visitor)).toBe(true)
  await bundle.rows('update tokenmill.person set revoked_at = now() where person_id = $1', [olga.personId])
  expect(await isIn(visitor)).toBe(false)
})

signsIn('puts what the provider refuses into words of its own', async () => {
  bundle.provider.account = null
  const visitor = bundle.openVisitor()
  const end = await visitor.signIn()
  expect(end.status).toBe(403)
  expect(end.text).toContain('Keycloak did not let you in')
  expect(end.text).not.toContain('a text of the provider')
  expect(await isIn(visitor)).toBe(false)
})

signsIn('reads some bytes of an answer and follows no redirect', async () => {
  const answered = async (instead: NonNullable<typeof bundle.provider.instead>) => {
    bundle.provider.instead = instead
    const end = await bundle.openVisitor().signIn()
    expect(end.status).toBe(403)
    expect(end.text).toContain('Keycloak does not answer as it should.')
  }
  await answered((path, response) => {
    if (path !== '/token') return false
    response.setHeader('content-type', 'application/json')
    for (let n = 0; n < 4; n += 1) response.write('x'.repeat(100_000))
    return true
  })
  await answered((path, response) => {
    if (path !== '/token') return false
    response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()
    return true
  })
})

signsIn('leaves no code, state, token, subject or e-mail in the log or in the store', async () => {
  bundle.provider.account = { subject: SUBJECT, email: EMAIL }
  const visitor = bundle.openVisitor()
  const { callback } = await visitor.leave()
  await visitor.get(callback)
  const { searchParams } = new URL(callback)
  const secrets = [...['code', 'state'].map(name => searchParams.get(name) ?? ''), EMAIL]
  expect(secrets.every(text => text.length > 10)).toBe(true)
  expect(logged).toContain('an answer of the OpenID provider was refused')
  expect(logged).toContain('/openid/callback')
  for (const text of [...secrets, SUBJECT, 'a text of the provider', 'eyJ']) expect(logged).not.toContain(text)
  const rows = JSON.stringify(await bundle.rows('select * from tokenmill.openid_flow'))
  for (const text of [...secrets, SUBJECT]) expect(rows).not.toContain(text)
})

it('is asked for no more than people sign in', async () => {
  const begins = Array.from({ length: 40 }, () => bundle.openVisitor().post('/openid/begin'))
  const before = bundle.provider.asked.length
  await Promise.all(begins)
  expect(bundle.provider.asked.length).toBeLessThanOrEqual(before + 1)
  const statuses: number[] = []
  for (let n = 0; n < 70; n += 1)
    statuses.push((await bundle.openVisitor().get('/openid/callback?code=x&state=y')).status)
  expect(new Set(statuses)).toEqual(new Set([403, 429]))
  // Nobody's failures keep out who is let in. On a machine that stands still for seconds the provider may be late once.
  await until(async () => (await bundle.openVisitor().signIn()).status === 200, { what: 'a sign-in' })
})
