// What the console asks a provider, and by which rules: the addresses, the deadlines and the rest between failures.
import { expect, it } from 'vitest'
import { openProvider } from '../../../../producers/console/openid-provider/provider.ts'
import { openLog } from '../../../../src/log.ts'
import { type Outbound, OutboundError, type OutboundRequest } from '../../../../src/outbound.ts'
import { Secret } from '../../../../src/secret.ts'

const ISSUER = 'https://login.example.com/realms/main'
const CALLBACK = 'https://console.example.com/openid/callback'

type Answers = Record<string, unknown>

/** A provider that answers GETs with these bodies, and the requests that came to it. */
function openBench(answers: Answers, issuer = ISSUER) {
  let now = Date.now()
  const asked: { url: string; request: OutboundRequest }[] = []
  const request: Outbound['request'] = async (url, sent) => {
    asked.push({ url: String(url), request: sent })
    const body = answers[new URL(url).pathname.split('/').at(-1) ?? '']
    if (body === undefined) throw new OutboundError('timeout', true)
    return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) }
  }
  const settings = { issuer, clientId: 'console', secretFile: '', name: 'Keycloak' }
  const deps = { secret: new Secret('p:w d'), outbound: { request }, clock: () => now, log: openLog('silent') }
  return {
    provider: openProvider(settings, deps),
    asked,
    wait: (ms: number) => {
      now += ms
    },
  }
}

const metadata = (more: Answers = {}) => ({
  'openid-configuration': {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/auth`,
    token_endpoint: `${ISSUER}/token`,
    jwks_uri: `${ISSUER}/jwks`,
    ...more,
  },
})

it('sends people away with state, nonce and PKCE, each new, and asks for no more than who they are', async () => {
  const { provider, asked } = openBench(metadata())
  const [first, second] = [await provider.depart(CALLBACK), await provider.depart(CALLBACK)]
  const { searchParams: sent } = first?.to ?? new URL('about:blank')
  expect(first?.to.href.startsWith(`${ISSUER}/auth?`)).toBe(true)
  expect(Object.fromEntries(sent)).toEqual({
    client_id: 'console',
    redirect_uri: CALLBACK,
    response_type: 'code',
    scope: 'openid',
    state: first?.state,
    nonce: first?.nonce,
    code_challenge_method: 'S256',
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
  })
  for (const name of ['state', 'nonce', 'verifier'] as const) expect(first?.[name]).not.toBe(second?.[name])
  expect(asked).toHaveLength(1)
})

it('knows when the provider did not answer, also when it took no code, until it answers again', async () => {
  const answers = metadata() as Answers
  const { provider, wait } = openBench(answers)
  expect(provider.awayAt()).toBeUndefined()
  const departure = await provider.depart(CALLBACK)
  if (!departure) return expect.fail()
  const callback = new URL(`${CALLBACK}?code=c&state=${departure.state}`)
  const arrive = () => provider.arrive(callback, { ...departure, begunAt: Date.now() })
  expect(await arrive()).toEqual({ failed: 'away' })
  const first = provider.awayAt()
  expect(first).toEqual(expect.any(Number))
  wait(5_000)
  expect(await arrive()).toEqual({ failed: 'away' })
  expect(provider.awayAt()).toBe((first ?? 0) + 5_000)
  wait(700_000)
  expect(await provider.depart(CALLBACK)).toBeDefined()
  expect(provider.awayAt()).toBeUndefined()
})

it.each([
  ['names another issuer', { issuer: 'https://evil.example' }],
  ['names the issuer with a slash more', { issuer: `${ISSUER}/` }],
  ['has no address to sign in', { authorization_endpoint: undefined }],
  ['has an address to sign in without TLS', { authorization_endpoint: 'http://login.example.com/auth' }],
  ['has a script for an address to sign in', { authorization_endpoint: 'javascript:alert(1)' }],
])('goes to no provider that %s', async (_, more) => {
  const { provider } = openBench(metadata(more))
  expect(await provider.depart(CALLBACK)).toBeUndefined()
  expect(provider.awayAt()).toBeTypeOf('number')
})

it('asks a provider that is away once a second at most, whoever wants to sign in, and then knows it for a while', async () => {
  const answers: Answers = {}
  const { provider, asked, wait } = openBench(answers)
  expect(provider.awayAt()).toBeUndefined()
  const departures = await Promise.all(Array.from({ length: 20 }, () => provider.depart(CALLBACK)))
  expect([departures.filter(Boolean).length, asked.length]).toEqual([0, 1])
  const at = provider.awayAt() ?? 0
  wait(900)
  await provider.depart(CALLBACK)
  expect(asked).toHaveLength(1)
  wait(100)
  await provider.depart(CALLBACK)
  expect([asked.length, provider.awayAt()]).toEqual([2, at + 1_000])
  Object.assign(answers, metadata())
  wait(1_000)
  expect(await provider.depart(CALLBACK)).toBeDefined()
  expect([asked.length, provider.awayAt()]).toEqual([3, undefined])
  // It is asked again after ten minutes; if it is away then, what it said before holds.
  delete answers['openid-configuration']
  wait(600_000)
  expect(await provider.depart(CALLBACK)).toBeDefined()
  expect(asked).toHaveLength(4)
})

it.each([
  ['in the header by default', undefined, 'header'],
  ['in the header where both do', ['client_secret_post', 'client_secret_basic'], 'header'],
  ['in the body where only that does', ['client_secret_post'], 'body'],
])('proves who the console is %s, within five seconds and 256 KiB', async (_, methods, where) => {
  const { provider, asked } = openBench(metadata({ token_endpoint_auth_methods_supported: methods }))
  const departure = await provider.depart(CALLBACK)
  if (!departure) return expect.fail()
  const back = new URL(`${CALLBACK}?code=one&state=${departure.state}`)
  // The address for tokens doesn't answer.
  expect(await provider.arrive(back, { ...departure, begunAt: Date.now() })).toEqual({ failed: 'away' })
  const { request, url } = asked[1] ?? { request: undefined, url: '' }
  expect(url).toBe(`${ISSUER}/token`)
  const body = new URLSearchParams(String(request?.body))
  expect(body.get('code_verifier')).toBe(departure.verifier)
  expect(body.get('redirect_uri')).toBe(CALLBACK)
  const basic = `Basic ${Buffer.from('console:p%3Aw+d').toString('base64')}`
  expect(request?.headers['authorization']).toBe(where === 'header' ? basic : undefined)
  expect(body.get('client_secret')).toBe(where === 'body' ? 'p:w d' : null)
  for (const sent of asked) expect(sent.request).toMatchObject({ timeoutMs: 5_000, bytesMax: 262_144 })
})
