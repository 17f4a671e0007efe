// The requests to the provider: by src/outbound.ts, so https to public addresses, with a deadline and a limit on the answer.
import type { CustomFetch } from 'openid-client'
import type { Outbound } from '../../../src/outbound.ts'

const REQUEST_MS_MAX = 5_000
/** Metadata and key sets have some thousand bytes. */
const ANSWER_BYTES_MAX = 256 * 1024
/** An answer with one of these has no body (Fetch standard). */
const BODILESS = new Set([204, 205, 304])

/** It throws `OutboundError`. */
export function fetchBy(outbound: Pick<Outbound, 'request'>): CustomFetch {
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
