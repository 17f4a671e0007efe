// The OpenID provider: the way there, and what its answer proves. `openid-client` checks the answer: `state` and `iss` of the
// response; of the ID token the signature, issuer, audience, expiry and nonce. What it says of a failure may hold what the provider or
// a stranger wrote, so no text of it leaves this file.
import * as client from 'openid-client'
import type { Clock } from '../../../src/clock.ts'
import { isSubject } from '../../../src/job/system/account.ts'
import type { Logger } from '../../../src/logger.ts'
import { type Outbound, OutboundError } from '../../../src/outbound.ts'
import type { Secret } from '../../../src/secret.ts'
import type { OpenIdSettings } from './settings.ts'

/** `away`: the provider doesn't answer as one. `denied`: it doesn't let the person in. `wrong`: its answer proves nothing. */
export type Failure = 'away' | 'denied' | 'wrong'

export type Arrival = { subject: string } | { failed: Failure }

export interface Departure {
  /** Where the browser goes. */
  to: URL
  state: string
  nonce: string
  /** Of PKCE. */
  verifier: string
}

export interface OpenIdProvider {
  /** The word on the button. */
  name: string
  issuer: string
  /** When the provider last didn't answer as it should (ms since the epoch); undefined: it has answered since, or was not asked yet. */
  awayAt(): number | undefined
  /** Undefined: the provider is away. `redirectUri`: where it sends the browser back. */
  depart(redirectUri: string): Promise<Departure | undefined>
  /** `callback`: the whole address to which the browser came back. `begunAt`: ms since the epoch. Never rejects. */
  arrive(callback: URL, flow: Pick<Departure, 'state' | 'nonce' | 'verifier'> & { begunAt: number }): Promise<Arrival>
}

export interface ProviderDeps {
  secret: Secret
  outbound: Pick<Outbound, 'request'>
  clock: Clock
  log: Logger
}

/** What the provider says of itself is read again after this time. */
const KEPT_MS = 10 * 60_000
/** After a failure it isn't asked for this time. */
const REST_MS = 1_000
/** How far its clock may be from ours, in seconds. */
const SKEW_S = 60
/** The errors of RFC 6749 and OpenID Connect that may stand in a log; any other text is the provider's own. */
const KNOWN =
  /^(invalid_(request|client|grant|scope)|unauthorized_client|unsupported_(grant|response)_type|access_denied|server_error|temporarily_unavailable|(login|consent|interaction)_required|account_selection_required)$/

export function openProvider(settings: OpenIdSettings, { secret, outbound, clock, log }: ProviderDeps): OpenIdProvider {
  const { issuer, name } = settings
  let known: { configuration: client.Configuration; at: number } | undefined
  let awayAt: number | undefined
  let asked: Promise<client.Configuration | undefined> | undefined

  const read = async (): Promise<client.Configuration | undefined> => {
    try {
      const configuration = await discover(settings, { secret, outbound })
      known = { configuration, at: clock() }
      awayAt = undefined
      return configuration
    } catch (error) {
      log.warn({ reason: reasonOf(error) }, 'the OpenID provider did not say how it is reached')
      awayAt = clock()
      return undefined
    }
  }
  const configured = async (): Promise<client.Configuration | undefined> => {
    if (known && clock() - known.at < KEPT_MS) return known.configuration
    if (awayAt !== undefined && clock() - awayAt < REST_MS) return known?.configuration
    asked ??= read().finally(() => {
      asked = undefined
    })
    return (await asked) ?? known?.configuration
  }

  return {
    name,
    issuer,
    awayAt: () => awayAt,
    async depart(redirectUri) {
      const configuration = await configured()
      if (!configuration) return undefined
      const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()]
      const to = client.buildAuthorizationUrl(configuration, {
        response_type: 'code',
        scope: 'openid',
        redirect_uri: redirectUri,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
      return { to, state, nonce, verifier }
    },
    async arrive(callback, { state, nonce, verifier, begunAt }) {
      const configuration = await configured()
      if (!configuration) return { failed: 'away' }
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
      try {
        const tokens = await client.authorizationCodeGrant(configuration, callback, checks)
        awayAt = undefined
        const claims = tokens.claims()
        const isRight = claims && isTimely(claims.iat, begunAt, clock()) && isSubject(claims.sub)
        if (isRight) return { subject: claims.sub }
        log.warn({ reason: 'iat or sub' }, 'an answer of the OpenID provider was refused')
        return { failed: 'wrong' }
      } catch (error) {
        log.warn({ reason: reasonOf(error) }, 'an answer of the OpenID provider was refused')
        if (isAway(error)) awayAt = clock()
        return { failed: failureOf(error) }
      }
    },
  }
}

async function discover(
  { issuer, clientId }: OpenIdSettings,
  { secret, outbound }: Pick<ProviderDeps, 'secret' | 'outbound'>,
): Promise<client.Configuration> {
  // outbound.ts decides who may be asked over http: a host of TOKENMILL_PRIVATE_HOSTS.
  const isPlain = issuer.startsWith('http:')
  const configuration = await client.discovery(new URL(issuer), clientId, {}, authentication(secret.reveal()), {
    // An ID token is believed for its signature, and not for the connection by which it came.
    execute: [client.enableNonRepudiationChecks, ...(isPlain ? [client.allowInsecureRequests] : [])],
    [client.customFetch]: fetchBy(outbound),
  })
  const { issuer: said, authorization_endpoint: endpoint } = configuration.serverMetadata()
  // The package takes an issuer that differs in a slash, and templates of some providers.
  if (said !== issuer) throw new Mismatch('issuer')
  if (!isPlain && new URL(endpoint ?? '').protocol !== 'https:') throw new Mismatch('endpoint')
  return configuration
}

class Mismatch extends Error {
  override name = 'Mismatch'
  readonly what: string

  constructor(what: 'issuer' | 'endpoint') {
    super(`the provider names another ${what}`)
    this.what = what
  }
}

/** In the header, unless the provider takes the secret in the body only (OpenID Connect Core 1.0, section 9). */
function authentication(secret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)]
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const inBody = !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
    return (inBody ? post : basic)(server, ...rest)
  }
}

/** An ID token is made when the code is redeemed: after the flow began, and not in the future. */
function isTimely(iat: number, begunAt: number, now: number): boolean {
  return iat >= begunAt / 1000 - SKEW_S && iat <= now / 1000 + SKEW_S
}

function failureOf(error: unknown): Failure {
  if (isAway(error)) return 'away'
  if (!(error instanceof client.AuthorizationResponseError)) return 'wrong'
  return /^(server_error|temporarily_unavailable)$/.test(error.error) ? 'away' : 'denied'
}

/** Not so what a browser brings back as the provider's error: anybody could write that. */
function isAway(error: unknown): boolean {
  return outboundOf(error) !== undefined || (error instanceof client.ResponseBodyError && error.status >= 500)
}

/** A word for the log, of which nobody but this program and its packages chose a character. */
function reasonOf(error: unknown): string {
  const outbound = outboundOf(error)
  if (outbound) return outbound.code === undefined ? outbound.kind : `${outbound.kind} ${outbound.code}`
  if (error instanceof Mismatch) return error.what
  if (error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError)
    return KNOWN.test(error.error) ? error.error : 'another error'
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^OAUTH_[A-Z_]{1,60}$/.test(code) ? code : 'unreadable'
}

function outboundOf(error: unknown): OutboundError | undefined {
  for (let one = error; one instanceof Error; one = one.cause) if (one instanceof OutboundError) return one
  return undefined
}

const REQUEST_MS_MAX = 5_000
/** Metadata and key sets have some thousand bytes. */
const ANSWER_BYTES_MAX = 256 * 1024
/** An answer with one of these has no body (Fetch standard). */
const BODILESS = new Set([204, 205, 304])

/** Requests by src/outbound.ts: https to public addresses, with a deadline and a limit on the answer. Throws `OutboundError`. */
function fetchBy(outbound: Pick<Outbound, 'request'>): client.CustomFetch {
  return async (url, { method, headers, body }) => {
    const answer = await outbound.request(url, {
      method: method === 'POST' ? 'POST' : 'GET',
      headers,
      body: body === undefined || body === null ? undefined : String(body),
      timeoutMs: REQUEST_MS_MAX,
      bytesMax: ANSWER_BYTES_MAX,
    })
    const { status } = answer
    return new Response(BODILESS.has(status) ? null : new Uint8Array(answer.body), { status, headers: answer.headers })
  }
}
