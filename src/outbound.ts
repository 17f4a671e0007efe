// Outgoing HTTP requests: only https and only to public addresses, except to `privateHosts`. The address of the open
// connection is checked, so that a host name can't change to a private address after the check. Each request has one
// deadline and a limit on the answer's size, follows no redirects, and ignores proxy settings of the environment. It
// never retries: only the caller knows whether a repeat is harmless.
import type { LookupAddress, LookupOptions } from 'node:dns'
import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, type Dispatcher } from 'undici'
import { startTimeLimit } from './clock.ts'
import { isPrivateAddress } from './private-address.ts'
import { TLS_POLICY } from './tls.ts'

type OutboundKind = 'forbidden' | 'unreachable' | 'timeout' | 'too_large' | 'protocol'

/** A request failed. `sent`: the server may have seen the request. The error holds neither URL nor headers. */
export class OutboundError extends Error {
  override name = 'OutboundError'
  readonly kind: OutboundKind
  readonly sent: boolean
  /** The error code of the system or of undici: ECONNREFUSED, UND_ERR_SOCKET, … */
  readonly code: string | undefined

  constructor(kind: OutboundKind, sent: boolean, code?: string) {
    super(`outgoing request: ${kind}${code === undefined ? '' : ` (${code})`}`)
    this.kind = kind
    this.sent = sent
    this.code = code
  }
}

export interface OutboundRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers: Record<string, string>
  body?: string | Buffer | undefined
  /**
   * The time limit for everything together: waiting for a connection, connecting, sending, and receiving the whole
   * answer.
   */
  timeoutMs: number
  /** The largest body of an answer, in bytes. */
  bytesMax: number
  /**
   * The caller needs only status and headers: at most `bytesMax` of the body are read, and a longer body is no error.
   */
  statusOnly?: boolean
}

export interface OutboundAnswer {
  status: number
  /** Names are in lower case; values of a repeated header are joined by `, `. */
  headers: Record<string, string>
  body: Buffer
}

export interface Outbound {
  /** Throws `OutboundError`. */
  request(url: string | URL, request: OutboundRequest): Promise<OutboundAnswer>
  close(): Promise<void>
}

export interface OutboundOptions {
  /** Hosts that may have a private address and may use http, each `host` or `host:port`. `any`: all hosts may. */
  privateHosts: readonly string[] | 'any'
  /** The most connections per origin; undefined: no limit. */
  connections?: number
  /** CA certificates that replace Node's. */
  ca?: string
  lookup?: LookupFunction
}

const CONNECT_MS_MAX = 10_000
const KEEP_ALIVE_MS = 30_000
const HEADER_BYTES_MAX = 16 * 1024

export function openOutbound(options: OutboundOptions): Outbound {
  const isExempt = readPrivateHosts(options.privateHosts)
  const agent = new Agent({
    connections: options.connections ?? null,
    connect: guardedConnector(isExempt, options),
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    // The total deadline replaces undici's own time limits.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: HEADER_BYTES_MAX,
    allowH2: false,
  })
  return {
    request: async (url, request) => {
      const target = readTarget(url, isExempt)
      return exchange(agent, target, request)
    },
    close: () => agent.destroy(),
  }
}

type IsExempt = (hostname: string, port: string) => boolean

/** Whether a host may have a private address and may use http. The function takes the host as a URL writes it, and the port. */
export function readPrivateHosts(privateHosts: OutboundOptions['privateHosts']): IsExempt {
  if (privateHosts === 'any') return () => true
  const exempt = new Set(privateHosts.map(host => host.toLowerCase()))
  return (hostname, port) => {
    // undici strips the brackets of an IPv6 address; the URL and the list of hosts keep them.
    const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname
    return exempt.has(host) || exempt.has(`${host}:${port}`)
  }
}

const portOf = (protocol: string, port: string) => port || (protocol === 'https:' ? '443' : '80')

function readTarget(url: string | URL, isExempt: IsExempt): URL {
  if (!URL.canParse(String(url))) throw new OutboundError('forbidden', false, 'URL')
  const target = new URL(url)
  const exempt = isExempt(target.hostname, portOf(target.protocol, target.port))
  const allowed = target.protocol === 'https:' || (exempt && target.protocol === 'http:')
  if (!allowed) throw new OutboundError('forbidden', false, 'SCHEME')
  if (target.username !== '' || target.password !== '') throw new OutboundError('forbidden', false, 'USERINFO')
  return target
}

function guardedConnector(isExempt: IsExempt, options: OutboundOptions): buildConnector.connector {
  const settings = {
    timeout: CONNECT_MS_MAX,
    allowH2: false,
    ...TLS_POLICY,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  }
  const lookup = options.lookup ?? (systemLookup as LookupFunction)
  const open = buildConnector({ ...settings, lookup })
  const guarded = buildConnector({ ...settings, lookup: guardedLookup(lookup) })
  const refuse = (callback: buildConnector.Callback) => callback(new OutboundError('forbidden', false, 'ADDRESS'), null)
  return (target, callback) => {
    const { hostname, protocol, port } = target
    if (isExempt(hostname, portOf(protocol, port))) return open(target, callback)
    // The lookup function isn't called for an IP address in the URL, so the address is checked here.
    if (isIP(hostname) !== 0 && isPrivateAddress(hostname)) return refuse(callback)
    guarded(target, (...connected) => {
      const [error, socket] = connected
      if (error !== null) return callback(error, null)
      // Checks the address of the actual connection, however it was found.
      if (!isPrivateAddress(socket.remoteAddress ?? '')) return callback(null, socket)
      socket.destroy()
      refuse(callback)
    })
  }
}

/** Looks a host name up, and refuses the name if any of its addresses is private. */
function guardedLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options: LookupOptions, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '')
      const addresses: LookupAddress[] = Array.isArray(found) ? found : [{ address: found, family: isIP(found) }]
      const first = addresses[0]
      if (first === undefined || addresses.some(({ address }) => isPrivateAddress(address)))
        return callback(new OutboundError('forbidden', false, 'ADDRESS'), '')
      if (options.all) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }
}

function exchange(agent: Agent, target: URL, request: OutboundRequest): Promise<OutboundAnswer> {
  return new Promise((resolve, reject) => {
    let sent = false
    let over = false
    let controller: Dispatcher.DispatchController | undefined
    let answer: { status: number; headers: Record<string, string> } | undefined
    const chunks: Buffer[] = []
    let bytes = 0
    const endLimit = startTimeLimit(request.timeoutMs, () => suffice() || fail('timeout'))
    const finish = (end: () => void) => {
      if (over) return
      over = true
      endLimit()
      end()
    }
    const fail = (kind: OutboundKind, code?: string) =>
      finish(() => {
        const error = new OutboundError(kind, sent, code)
        controller?.abort(error)
        reject(error)
      })
    /** With `statusOnly`: if the status has come, resolves without the rest of the body and returns true. */
    const suffice = (): boolean => {
      if (!request.statusOnly || answer === undefined) return false
      const { status, headers } = answer
      finish(() => {
        controller?.abort(new OutboundError('too_large', true))
        resolve({ status, headers, body: Buffer.concat(chunks) })
      })
      return true
    }
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: started => {
        // The deadline passed while the request waited for a connection.
        if (over) return started.abort(new OutboundError('timeout', false))
        controller = started
        sent = true
      },
      onResponseStart: (_, status, raw) => {
        if (status < 200) return
        const headers = readHeaders(raw)
        if (request.statusOnly) {
          answer = { status, headers }
          return
        }
        if (status >= 300 && status < 400) return fail('protocol', 'REDIRECT')
        if (!/^(identity)?$/i.test(headers['content-encoding'] ?? '')) return fail('protocol', 'ENCODING')
        if (Number(headers['content-length'] ?? 0) > request.bytesMax) return fail('too_large')
        answer = { status, headers }
      },
      onResponseData: (_, chunk) => {
        bytes += chunk.length
        if (bytes > request.bytesMax) {
          if (!suffice()) fail('too_large')
          return
        }
        chunks.push(chunk)
      },
      onResponseEnd: () => {
        if (answer === undefined) return fail('protocol')
        const { status, headers } = answer
        finish(() => resolve({ status, headers, body: Buffer.concat(chunks, bytes) }))
      },
      onResponseError: (_, error) => {
        if (suffice()) return
        if (error instanceof OutboundError) return fail(error.kind, error.code)
        const code = codeOf(error)
        fail(error.name === 'HTTPParserError' ? 'protocol' : kindOf(code), code)
      },
    }
    agent.dispatch(
      {
        origin: target.origin,
        path: `${target.pathname}${target.search}`,
        method: request.method,
        headers: { 'accept-encoding': 'identity', ...request.headers },
        body: request.body ?? null,
      },
      handler,
    )
  })
}

function readHeaders(raw: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(raw).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}

function codeOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : undefined
}

function kindOf(code: string | undefined): OutboundKind {
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') return 'timeout'
  return code === 'UND_ERR_HEADERS_OVERFLOW' || code?.startsWith('UND_ERR_RES') ? 'protocol' : 'unreachable'
}
