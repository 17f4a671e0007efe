// The simulated scheme-token network and third-party tokeniser, for rehearsals: a separate server that shares only the
// wire formats with tokenmill. It limits the calls per second, can answer late, and keeps its state over restarts.
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fastify from 'fastify'
import { registerControl } from './control.ts'
import { openJournal } from './journal.ts'
import { openKeys, writeSchemeFile } from './keys.ts'
import { registerMdes } from './mdes.ts'
import { openSecurity } from './security.ts'
import { openSimulatorState } from './state.ts'
import { registerThirdParty } from './third-party.ts'

interface SchemeSimulatorOptions {
  host: string
  /** 0: any free port. */
  port: number
  /** The folder for keys, scheme file and journal. */
  folder: string
  /** The allowed calls per second. Further calls are answered with 429. */
  ratePerSecond: number
  latencyMs: number
  /** The URL to which notifications are sent. */
  notifyUrl?: string | undefined
}

export interface SchemeSimulator {
  url: string
  /** `host:port`, a value for TOKENMILL_PRIVATE_HOSTS. */
  address: string
  /** The scheme file's path, a value for TOKENMILL_SCHEME_FILE. */
  schemeFile: string
  close(): Promise<void>
}

const BODY_BYTES_MAX = 64 * 1024
/** How many calls may come at once, in seconds of the rate. */
const BURST_SECONDS = 0.25

export async function openSchemeSimulator(options: SchemeSimulatorOptions): Promise<SchemeSimulator> {
  const { folder, ratePerSecond, latencyMs } = options
  const keys = openKeys(folder)
  const journal = await openJournal(join(folder, 'journal.ndjson'))
  const state = openSimulatorState(keys, journal, openSecurity(keys))
  state.notifyUrl = options.notifyUrl
  // A task that was in progress when the simulator ended can't end any more, so it is marked as failed.
  for (const task of [...journal.tasks.values()])
    if (task.state === 'IN_PROGRESS') await journal.record({ task: { ...task, state: 'FAILED' } })
  const isAllowed = openAllowance(ratePerSecond)
  const server = fastify({ logger: false, bodyLimit: BODY_BYTES_MAX, forceCloseConnections: true })
  server.removeAllContentTypeParsers()
  // The signature covers the text, so handlers get the body as text.
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (_, body, done) => done(null, body))
  server.addHook('preHandler', async (request, reply) => {
    const network = request.url.startsWith('/mdes/')
    if (!network && !request.url.startsWith('/third-party/')) return
    state.count('calls')
    if (!isAllowed(Date.now())) {
      state.count('throttled')
      return reply.code(429).send(gatewayError('RATE_LIMIT_EXCEEDED'))
    }
    if (latencyMs > 0) await pause(latencyMs)
    if (!network) return
    const { method, url, headers, body } = request
    const signed = {
      method,
      url: `http://${headers.host}${url}`,
      body: typeof body === 'string' ? body : '',
      authorization: headers.authorization,
    }
    const signature = state.security.checkSignature(signed, Date.now())
    if (signature === 'valid') return
    state.count(signature === 'wrong' ? 'wrongSignatures' : 'replayedSignatures')
    return reply.code(401).send(gatewayError('AUTHENTICATION_FAILED'))
  })
  registerMdes(server, state)
  registerThirdParty(server, state)
  registerControl(server, state)
  await server.listen({ host: options.host, port: options.port })
  const bound = server.server.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : options.port
  const address = `${options.host}:${port}`
  const url = `http://${address}`
  return {
    url,
    address,
    schemeFile: writeSchemeFile(folder, { url, ratePerSecond }),
    close: async () => {
      await server.close()
      await state.close()
    },
  }
}

/** A token bucket. The function takes a token and returns true; false if the bucket is empty. */
function openAllowance(ratePerSecond: number): (now: number) => boolean {
  const most = Math.max(1, ratePerSecond * BURST_SECONDS)
  let tokens = most
  let at = 0
  return now => {
    tokens = Math.min(most, tokens + ((now - at) / 1_000) * ratePerSecond)
    at = now
    if (tokens < 1) return false
    tokens -= 1
    return true
  }
}

function gatewayError(reason: string): object {
  const error = {
    Source: 'Gateway',
    ReasonCode: reason,
    Description: reason,
    Recoverable: reason !== 'AUTHENTICATION_FAILED',
    Details: null,
  }
  return { Errors: { Error: [error] } }
}
