// Opens the verification of Bearer tokens: those of registered keys, and those of issuers whose keys are fetched from
// the URL in the settings. authenticate.ts checks the token's claims.
import type { Clock } from '../../../src/clock.ts'
import type { Config } from '../../../src/config.ts'
import type { Outbound } from '../../../src/outbound.ts'
import { type Bearer, openBearer } from '../../../src/vault/bearer.ts'

const JWKS = { timeoutMs: 3_000, bytesMax: 64 * 1024 } as const

export function openBearerFor(
  { jwtIssuers, audience }: Pick<Config, 'jwtIssuers' | 'audience'>,
  outbound: Outbound,
  clock: Clock,
): Bearer {
  return openBearer({ issuers: jwtIssuers, fetchJwks: url => fetchText(outbound, url), audience, clock })
}

async function fetchText(outbound: Outbound, url: string): Promise<string> {
  const headers = { accept: 'application/json' }
  const { status, body } = await outbound.request(url, { method: 'GET', headers, ...JWKS })
  if (status !== 200) throw new Error(`the JWKS was answered ${status}`)
  return body.toString('utf8')
}
