// Turns a Redis URL into connection options. Options that aren't in the URL (timeouts, retries) are set where
// connections are opened.
import { isIP } from 'node:net'
import type { RedisOptions } from 'ioredis'
import { TLS_POLICY } from '../tls.ts'

interface Node {
  host: string
  port: number
}

/** Host and port of `url`. Throws `TypeError` for a text that isn't a URL. */
export function nodeOf(url: string): Node {
  const { hostname, port } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, '') || '127.0.0.1', port: port === '' ? 6379 : Number(port) }
}

/**
 * User, password, database and TLS of `url`. Certificates are verified against the system's CAs and
 * NODE_EXTRA_CA_CERTS.
 */
export function credentialsOf(url: string): RedisOptions {
  const { protocol, username, password, pathname } = new URL(url)
  const { host } = nodeOf(url)
  const db = Number(pathname.slice(1) || 0)
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(Number.isSafeInteger(db) && db > 0 && { db }),
    ...(protocol === 'rediss:' && { tls: { ...TLS_POLICY, ...(isIP(host) === 0 && { servername: host }) } }),
  }
}
