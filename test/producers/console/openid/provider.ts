// An OpenID provider in the test process: `oidc-provider` on a real port, whose people are let in without a page. `tamper` changes what
// it hands out, signed with its own key where it is to be believed so far.
import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Provider as OidcProvider } from 'oidc-provider'

export const CLIENT_ID = 'tokenmill-console'
export const CLIENT_SECRET = 'a-secret-of-the-test-with-32-characters'

export interface Account {
  subject: string
  email: string
}

/** Changes the claims of an ID token; `header` is that of the JWS. `isForged`: signed by a key that isn't the provider's. */
export type Tamper = (token: {
  claims: Record<string, unknown>
  header: Record<string, unknown>
  isForged: boolean
}) => void

export interface TestProvider {
  issuer: string
  /** Who is at the browser. Null: who leaves the provider without signing in. */
  account: Account | null
  tamper: Tamper | undefined
  /** Answers in place of the provider; true: it has answered. */
  instead: ((path: string, response: ServerResponse) => boolean) | undefined
  /** The paths that were asked for. */
  asked: string[]
  /** Begins to answer, for a client that is sent back to this URI. */
  open(redirectUri: string): void
  close(): Promise<void>
}

/** Listens at once; until `open` it answers 503, as a provider that is away. */
export async function openTestProvider(port: number): Promise<TestProvider> {
  const issuer = `http://127.0.0.1:${port}`
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'ES256' }
  let answer: ((request: IncomingMessage, response: ServerResponse) => Promise<void>) | undefined
  const provider: TestProvider = {
    issuer,
    account: null,
    tamper: undefined,
    instead: undefined,
    asked: [],
    open(redirectUri) {
      answer = answering(provider, { jwk, redirectUri, key: createPrivateKey({ key: jwk, format: 'jwk' }) })
    },
    close: () => {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    provider.asked.push(path)
    if (provider.instead?.(path, response)) return
    if (answer === undefined) response.writeHead(503).end()
    else answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  return provider
}

function answering(
  provider: TestProvider,
  { jwk, redirectUri, key }: { jwk: object; redirectUri: string; key: KeyObject },
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const oidc = new OidcProvider(provider.issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: [redirectUri],
        response_types: ['code'],
        grant_types: ['authorization_code'],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [jwk as { kty: 'EC' }] },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ['a key of the test'] },
    interactions: { url: async (_context, { uid }) => `/interaction/${uid}` },
    findAccount: async (_context, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, email: provider.account?.email }),
    }),
    async loadExistingGrant(context) {
      const { oidc: asked } = context
      const grant = new asked.provider.Grant({
        clientId: asked.client?.clientId ?? '',
        accountId: asked.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid')
      await grant.save()
      return grant
    },
  })
  const callback = oidc.callback()
  return async (request, response) => {
    if (request.url?.startsWith('/interaction/')) {
      const { account } = provider
      const result = account
        ? { login: { accountId: account.subject, remember: false } }
        : { error: 'access_denied', error_description: '<b>a text of the provider</b>' }
      return oidc.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
    }
    if (request.url?.startsWith('/token') && provider.tamper) changeToken(response, provider.tamper, key)
    await callback(request, response)
  }
}

/** Puts another ID token into the answer of the token endpoint. */
function changeToken(response: ServerResponse, tamper: Tamper, key: KeyObject): void {
  const end = response.end.bind(response) as (text: string) => ServerResponse
  response.end = ((text: string | Buffer) => {
    const said = JSON.parse(String(text)) as { id_token: string }
    const [header = {}, claims = {}] = said.id_token
      .split('.', 2)
      .map(part => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>)
    const token = { header, claims, isForged: false }
    tamper(token)
    const by = token.isForged ? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey : key
    const changed = JSON.stringify({ ...said, id_token: signed(header, claims, by) })
    response.setHeader('content-length', Buffer.byteLength(changed))
    return end(changed)
  }) as typeof response.end
}

function signed(header: Record<string, unknown>, claims: Record<string, unknown>, key: KeyObject): string {
  const text = [header, claims].map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  if (header['alg'] === 'none') return `${text}.`
  return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}
