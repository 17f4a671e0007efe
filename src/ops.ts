// Serves /metrics, /healthz and /readyz of one role on one host, on a separate port; with `jwks` also
// /.well-known/jwks.json. The product's own HTTP interface is elsewhere.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cleanText } from './clean-text.ts'
import { ConfigError } from './config.ts'
import type { Health } from './health.ts'
import { CONTENT_TYPE, pageOf, type Snapshot } from './metrics.ts'

/**
 * Another process uses the port. The command prints one line that says what to do and exits with 1, since the port may be
 * free at the next start. It isn't a `ConfigError`: the setting isn't wrong.
 */
export class PortInUse extends Error {
  override name = 'PortInUse'

  /** `setting`: the setting that chooses the port; `address`: `host:port`. */
  constructor(setting: string, address: string) {
    super(`${setting}: something listens on ${address} already; end that process, or set another port`)
  }
}

export interface Ops {
  port: number
  close(): Promise<void>
}

export interface OpsOptions {
  host: string
  /** 0: any free port. */
  port: number
  reasons: Health['reasons']
  /** The metrics of each process of the role. */
  snapshots: () => Promise<readonly Snapshot[]>
  /** The public keys that verify results, served at /.well-known/jwks.json. */
  jwks?: () => Promise<unknown>
}

/** Roles in the order of their ports. */
const ROLES = ['gateway', 'three-ds', 'scheduler', 'workers', 'console'] as const
export type OpsRole = (typeof ROLES)[number]
const FIRST = 9464
const SETTING = 'TOKENMILL_METRICS_PORT'

/** The port of a role that has a process of its own. `setting`: the operator's setting. */
export function portOf(role: OpsRole, setting: number | undefined): number {
  return setting ?? FIRST + ROLES.indexOf(role)
}

/** The port of a role if one command starts all roles. `setting` is the first of five consecutive ports. */
export function portAmongAll(role: OpsRole, setting: number | undefined = FIRST): number {
  if (setting + ROLES.length - 1 > 65_535)
    throw new ConfigError(`${SETTING}: \`start\` uses it and the four ports after it, so it must be at most 65531`)
  return setting === 0 ? 0 : setting + ROLES.indexOf(role)
}

/** Starts to listen. Throws `PortInUse` if another process uses the port. */
export async function openOps({ host, port, reasons, snapshots, jwks }: OpsOptions): Promise<Ops> {
  const server = createServer((request, response) => {
    const answer = (status: number, body: string, type = 'text/plain; charset=utf-8') => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body)
    }
    const pages: Record<string, () => Promise<void>> = {
      '/healthz': async () => answer(200, 'ok\n'),
      '/readyz': async () => {
        const lines = await reasons()
        if (lines.length === 0) answer(200, 'ready\n')
        else answer(503, `${lines.map(cleanText).join('\n')}\n`)
      },
      '/metrics': async () => answer(200, await pageOf(await snapshots()), CONTENT_TYPE),
    }
    if (jwks)
      pages['/.well-known/jwks.json'] = async () => answer(200, JSON.stringify(await jwks()), 'application/json')
    const page = pages[new URL(request.url ?? '/', 'http://ops').pathname]
    if (!page || (request.method !== 'GET' && request.method !== 'HEAD')) return answer(404, 'not found\n')
    page().catch(() => answer(500, 'could not be read\n'))
  })
  server.requestTimeout = 10_000
  return {
    port: await listen(server, host, port),
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Opens the port for a role that has only one process. */
export function openOwnOps(health: Health, place: Pick<OpsOptions, 'host' | 'port'>): Promise<Ops> {
  return openOps({ ...place, reasons: health.reasons, snapshots: async () => [await health.snapshot()] })
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new PortInUse(SETTING, `${host}:${port}`) : error),
    )
    server.listen(port, host, resolve)
  })
  return (server.address() as AddressInfo).port
}
