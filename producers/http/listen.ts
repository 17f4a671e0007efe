// Starts a server, and at its end lets the requests in flight finish. A port that is in use has an error of its own.
import type { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { ConfigError } from '../../src/config.ts'
import type { Lifetime } from '../../src/lifetime.ts'
import type { Logger } from '../../src/logger.ts'
import { PortInUse } from '../../src/ops.ts'

/** A fastify application, whatever its routes. */
export interface App {
  server: Server
  close(): PromiseLike<unknown>
  listen(place: { host: string; port: number; backlog: number }): Promise<string>
}

export interface Tls {
  /** The certificate chain, PEM. */
  cert: Buffer
  key: Buffer
}

export interface Listening {
  host: string
  port: number
  /** The name of the setting that chooses the port. */
  setting: string
  /** Called if requests are still in flight some time after closing began. */
  giveUp?: () => void
}

/** How long requests in flight may continue after closing began, in ms. */
const DRAIN_MS = 20_000
/** After `giveUp` the remaining requests are answered within this time, in ms. */
const GIVE_UP_MS = 5_000
const IDLE_SWEEP_MS = 100

/** Listens. Returns the port. Throws `PortInUse` if the port is in use. */
export async function listen(
  app: App,
  { host, port, setting, giveUp }: Listening,
  { lifetime, log }: { lifetime: Lifetime; log: Logger },
): Promise<number> {
  const unused = watchUnused(app)
  lifetime.onClose('http server', async () => {
    const timer = setTimeout(() => giveUp?.(), DRAIN_MS)
    // A caller that doesn't read its answer isn't waited for.
    const cut = setTimeout(() => app.server.closeAllConnections(), DRAIN_MS + GIVE_UP_MS)
    // A connection whose last request has ended would stay open for the next request, which would not be served.
    const sweep = setInterval(() => {
      app.server.closeIdleConnections()
      for (const socket of unused) socket.destroy()
    }, IDLE_SWEEP_MS)
    await Promise.resolve(app.close()).finally(() => {
      clearTimeout(timer)
      clearTimeout(cut)
      clearInterval(sweep)
    })
  })
  await app.listen({ host, port, backlog: 4_096 }).catch(error => {
    const { code } = error as NodeJS.ErrnoException
    const address = `${host}:${port}`
    if (code === 'EADDRINUSE') throw new PortInUse(setting, address)
    if (code === 'EADDRNOTAVAIL' || code === 'EACCES' || code === 'ENOTFOUND')
      throw new ConfigError(`TOKENMILL_HTTP_HOST, ${setting}: ${address} can't be listened on (${code})`)
    throw error
  })
  const { port: bound } = app.server.address() as AddressInfo
  log.info({ port: bound }, 'serving')
  return bound
}

/** Connections without any request yet, which clients open in advance. Node doesn't count them as idle. */
function watchUnused({ server }: Pick<App, 'server'>): ReadonlySet<Socket> {
  const unused = new Set<Socket>()
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  })
  server.on('request', ({ socket }) => unused.delete(socket))
  return unused
}
