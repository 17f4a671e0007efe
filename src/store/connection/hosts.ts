// Reads the hosts that DATABASE_URL names, in the forms that libpq accepts: a list in the authority of the URL, lists
// in the parameters `host` and `port`, and keywords instead of a URL. No host is contacted here.
import { ConfigError } from '../../config.ts'

export interface Host {
  /** A host name, an address without brackets, or the folder of a Unix socket. */
  host: string
  port: number
}

/** What the driver needs to connect. */
export interface Address {
  /** A secret. If there are several hosts, the URL names none of them. */
  url: string
  /** Empty if there is only one host, which the driver reads from the URL. */
  hosts: Host[]
}

const PORT = 5432
const HOSTS_MAX = 16
/** Values of `target_session_attrs`. They all mean the same here, because tokenmill needs a host that takes writes. */
const WRITABLE = ['any', 'read-write', 'primary']

/** Reads the setting. Throws `ConfigError` if it can't be read. */
export function readAddress(text: string): Address {
  const url = urlOf(text)
  const [, scheme = '', authority = '', path = '', query = ''] =
    /^(\w+:\/\/)([^/?#]*)([^?#]*)\??([^#]*)/.exec(url) ?? []
  const parameters = new URLSearchParams(query)
  const wanted = parameters.get('target_session_attrs')
  if (wanted !== null && !WRITABLE.includes(wanted))
    throw new ConfigError(
      `DATABASE_URL: target_session_attrs must be read-write, because tokenmill writes to the store`,
    )
  const at = authority.lastIndexOf('@') + 1
  const hosts = readHosts(authority.slice(at), parameters)
  if (hosts.length === 0) return { url: assertReadable(url), hosts: [] }
  for (const name of ['host', 'port', 'target_session_attrs']) parameters.delete(name)
  return { url: assertReadable(`${scheme}${authority.slice(0, at)}localhost${path}?${parameters}`), hosts }
}

/** The setting as a URL, whichever form it has. Throws `ConfigError` if it can't be read. */
export function urlOf(text: string): string {
  return /^postgres(ql)?:\/\//.test(text) ? text : urlOfKeywords(text)
}

/** The hosts of a list; empty if there is only one, because the driver reads a single host from the URL. */
function readHosts(list: string, parameters: URLSearchParams): Host[] {
  const named = parameters.get('host')
  const parts = list.split(',').map(part => /^(\[[^\]]*\]|[^:]*):?(.*)$/.exec(part) ?? [])
  const names = named === null ? parts.map(([, name = '']) => decode(name)) : named.split(',')
  if (names.length < 2) return []
  if (names.length > HOSTS_MAX) throw new ConfigError(`DATABASE_URL: must name at most ${HOSTS_MAX} hosts`)
  const ports = parameters.get('port')?.split(',') ?? (named === null ? parts.map(([, , port = '']) => port) : [''])
  if (ports.length > 1 && ports.length !== names.length)
    throw new ConfigError(`DATABASE_URL: names ${names.length} hosts, but ${ports.length} ports`)
  return names.map((name, index) => ({
    host: name.replace(/^\[(.*)\]$/, '$1') || 'localhost',
    port: readPort(ports.length === 1 ? ports[0] : ports[index]),
  }))
}

function readPort(text = ''): number {
  const port = text === '' ? PORT : Number(text)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new ConfigError('DATABASE_URL: a port is no number')
  return port
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new ConfigError('DATABASE_URL: cannot be read; check its % signs')
  }
}

/** Throws `ConfigError` for an unreadable URL. The parser's own error would quote the URL with its password. */
function assertReadable(url: string): string {
  // An empty host means a Unix socket; the driver accepts it, the URL parser doesn't.
  if (!URL.canParse(url.replace('@/', '@localhost/')) && !url.includes(' '))
    throw new ConfigError('DATABASE_URL: cannot be read; special characters of a password are written as %XX')
  return url
}

/**
 * A URL made from keywords: `host=a,b port=5432 dbname=tokenmill user=…`. Values may be quoted by `'` and escaped by
 * `\`.
 */
function urlOfKeywords(text: string): string {
  const found = new Map<string, string>()
  let rest = text.trim()
  while (rest !== '') {
    const [whole, name = '', quoted, bare = ''] =
      /^(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?:\s+|$)/s.exec(rest) ?? []
    if (whole === undefined) throw new ConfigError('DATABASE_URL: cannot be read as keywords')
    found.set(name, (quoted ?? bare).replace(/\\(.)/gs, '$1'))
    rest = rest.slice(whole.length)
  }
  const take = (name: string) => {
    const value = encodeURIComponent(found.get(name) ?? '')
    found.delete(name)
    return value
  }
  const account = `${take('user')}:${take('password')}@`
  const database = take('dbname')
  return `postgres://${account === ':@' ? '' : account}/${database}?${new URLSearchParams([...found])}`
}
