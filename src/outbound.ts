// Outgoing HTTP requests: https to public addresses only. The check is on the address of the connection itself, so that a
// name can't point to a private address after the check. One total deadline, a bound on the answer, no redirects, no
// proxy of the environment. It never retries: only the caller knows whether a repeat is harmless.
import type { LookupAddress, LookupOptions } from 'node:dns'
import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, type Dispatcher } from 'undici'
import { isPrivateAddress } from './private-address.ts'
import { TLS_POLICY } from './tls.ts'

type OutboundKind = 'forbidden' | 'unreachable' | 'timeout' | 'too_large' | 'protocol'

/** `sent`: the server may have seen the request. The error holds neither URL nor headers. */
export class OutboundError extends Error {
  override name = 'OutboundError'
  readonly kind: OutboundKind
  readonly sent: boolean
  /** Of the system or of undici: ECONNREFUSED, UND_ERR_SOCKET, … */
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
  /** For everything together: waiting for a connection, connecting, sending, and the answer to its last byte. */
  timeoutMs: number
  /** The most that the answer's body may hold. */
  bytesMax: number
  /**
   * Only the status, whatever it is, and the headers count: no more than `bytesMax` of the body is read, however it goes
   * on.
   */
  statusOnly?: boolean
}

export interface OutboundAnswer {
  status: number
  /** Names in lower case; of a repeated header the values joined by `, `. */
  headers: Record<string, string>
  body: Buffer
}

export interface Outbound {
  /** Throws `OutboundError`. */
  request(url: string | URL, request: OutboundRequest): Promise<OutboundAnswer>
  close(): Promise<void>
}

export interface OutboundOptions {
  /** `host` or `host:port`: may be private, and may use http. `any`: all may. */
  privateHosts: readonly string[] | 'any'
  /** At most, per origin; left out: as many as there are requests. */
  connections?: number
  /** Certificates to trust instead of the system's. */
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
    // The total deadline stands in for both.
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

function readPrivateHosts(privateHosts: OutboundOptions['privateHosts']): IsExempt {
  if (privateHosts === 'any') return () => true
  const exempt = new Set(privateHosts.map(host => host.toLowerCase()))
  return (hostname, port) => {
    // undici strips the brackets of an IPv6 address, URL and the list keep them.
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
    // An address that stands in the URL is never looked up.
    if (isIP(hostname) !== 0 && isPrivateAddress(hostname)) return refuse(callback)
    guarded(target, (...connected) => {
      const [error, socket] = connected
      if (error !== null) return callback(error, null)
      // What is really at the other end, whatever led there.
      if (!isPrivateAddress(socket.remoteAddress ?? '')) return callback(null, socket)
      socket.destroy()
      refuse(callback)
    })
  }
}

/** One private address among those of a name forbids the name. */
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
    const timer = setTimeout(() => suffice() || fail('timeout'), request.timeoutMs)
    const finish = (end: () => void) => {
      if (over) return
      over = true
      clearTimeout(timer)
      end()
    }
    const fail = (kind: OutboundKind, code?: string) =>
      finish(() => {
        const error = new OutboundError(kind, sent, code)
        controller?.abort(error)
        reject(error)
      })
    /** Where the status is enough and is there, the request ends well, and what is left of the answer isn't read. */
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
