// A console that knows an OpenID provider of the test, and a browser that keeps cookies and follows redirects.
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../../ops/free-ports.ts'
import { type ConsoleBundle, openConsoleBundle, type Person } from '../bundle.ts'
import { CLIENT_ID, CLIENT_SECRET, openTestProvider, type TestProvider } from './provider.ts'

export const NAME = 'Keycloak'

export interface Visited {
  status: number
  /** Where the way ended. */
  url: string
  text: string
}

/** A browser without scripts. */
export interface Visitor {
  cookies: Map<string, string>
  post(path: string, form?: Record<string, string>): Promise<Visited>
  get(url: string): Promise<Visited>
  /** Goes from the console to the provider, and back as far as `callback`, which it doesn't ask for. */
  leave(form?: { path?: string; to?: string }): Promise<{ callback: string }>
  signIn(to?: string): Promise<Visited>
}

export interface OpenIdBundle extends ConsoleBundle {
  provider: TestProvider
  openVisitor(): Visitor
  /** Connects the account with the person, as a worker does but for its code. */
  bind(person: Pick<Person, 'personId'>, subject: string, issuer?: string): Promise<string>
}

/** Until `provider.open` the provider is away. */
export async function openOpenIdBundle(settings: Record<string, string> = {}): Promise<OpenIdBundle> {
  const [port = 0] = await freePorts(1)
  const provider = await openTestProvider(port)
  const folder = await mkdtemp(join(tmpdir(), 'tokenmill-openid-'))
  const secretFile = join(folder, 'client-secret')
  await writeFile(secretFile, `${CLIENT_SECRET}\n`, { mode: 0o600 })
  const bundle = await openConsoleBundle({
    TOKENMILL_OIDC_ISSUER: provider.issuer,
    TOKENMILL_OIDC_CLIENT_ID: CLIENT_ID,
    TOKENMILL_OIDC_CLIENT_SECRET_FILE: secretFile,
    TOKENMILL_OIDC_NAME: NAME,
    TOKENMILL_PRIVATE_HOSTS: new URL(provider.issuer).host,
    ...settings,
  })
  return {
    ...bundle,
    provider,
    openVisitor: () => visitorOf(bundle.origin, provider.issuer),
    async bind({ personId }, subject, issuer = provider.issuer) {
      const identityId = randomUUID()
      await bundle.rows(
        'insert into tokenmill.person_identity (identity_id, person_id, issuer, subject) values ($1, $2, $3, $4)',
        [identityId, personId, issuer, subject],
      )
      return identityId
    },
    async close() {
      await bundle.close()
      await provider.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function visitorOf(origin: string, issuer: string): Visitor {
  const cookies = new Map<string, string>()
  const visit = async (
    method: string,
    url: URL,
    { form, until }: { form?: Record<string, string>; until?: string } = {},
  ): Promise<Visited> => {
    if (until !== undefined && url.href.startsWith(until)) return { status: 0, url: url.href, text: '' }
    const answer = await ask(method, url, { form, cookies, origin })
    if (answer.to === undefined) return { ...answer, url: url.href }
    return visit('GET', new URL(answer.to, url), until === undefined ? {} : { until })
  }
  const visitor: Visitor = {
    cookies,
    post: (path, form = {}) => visit('POST', new URL(path, origin), { form }),
    get: url => visit('GET', new URL(url, origin)),
    async leave({ path = '/openid/begin', to = '/batches' } = {}) {
      const page = await visitor.post(path, { to })
      const [, link = ''] = /<a class="button" href="([^"]+)"/.exec(page.text) ?? []
      const there = new URL(link.replaceAll('&#38;', '&'))
      if (there.origin !== issuer) throw new Error(`the page leads to ${there.origin}`)
      const { url } = await visit('GET', there, { until: `${origin}/openid/callback` })
      return { callback: url }
    },
    async signIn(to) {
      return visitor.get((await visitor.leave(to === undefined ? {} : { to })).callback)
    },
  }
  return visitor
}

function ask(
  method: string,
  url: URL,
  { form, cookies, origin }: { form: Record<string, string> | undefined; cookies: Map<string, string>; origin: string },
): Promise<{ status: number; to: string | undefined; text: string }> {
  const body = form && new URLSearchParams(form).toString()
  // Cookies know no ports; each site sees only its own here.
  const mine = (name: string) => name.startsWith('tokenmill') === (url.origin === origin)
  const cookie = [...cookies]
    .filter(([name]) => mine(name))
    .map(([name, value]) => `${name}=${value}`)
    .join('; ')
  const own = { origin, 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' }
  return new Promise((resolve, reject) => {
    const headers = { ...(body === undefined ? {} : own), ...(cookie === '' ? {} : { cookie }) }
    const sent = request(url, { method, headers })
    sent.on('error', reject)
    sent.on('response', async response => {
      for (const line of response.headers['set-cookie'] ?? []) {
        const [pair = ''] = line.split(';')
        const [name = '', value = ''] = pair.split('=')
        if (value === '') cookies.delete(name)
        else cookies.set(name, value)
      }
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      const status = response.statusCode ?? 0
      resolve({
        status,
        to: status >= 300 && status < 400 ? response.headers.location : undefined,
        text: Buffer.concat(chunks).toString(),
      })
    })
    sent.end(body)
  })
}
