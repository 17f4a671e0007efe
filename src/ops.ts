// /metrics, /healthz and /readyz of a process, on a port of its own. It is not the product's HTTP interface.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Metrics } from './metrics.ts'
import { PortInUse } from './port-in-use.ts'

export interface Ops {
  port: number
  close(): Promise<void>
}

export interface OpsOptions {
  host: string
  /** The first port to try; the next free one of a hundred is taken. */
  port: number
  metrics: Metrics
  /** What is not as it should be, one line each; none: ready. */
  notReady: () => Promise<string[]>
  /** Brings gauges up to date before they are read. */
  collect?: () => Promise<void>
  /** Public keys that results are signed with, at /.well-known/jwks.json. */
  jwks?: () => Promise<unknown>
}

const PORTS_TRIED = 100

export async function openOps(options: OpsOptions): Promise<Ops> {
  const { host, port, metrics, notReady, collect, jwks } = options
  const server = createServer((request, response) => {
    const answer = (status: number, body: string, type = 'text/plain; charset=utf-8') => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body)
    }
    const pages: Record<string, () => Promise<void>> = {
      '/healthz': async () => answer(200, 'ok\n'),
      '/readyz': async () => {
        const reasons = await notReady()
        if (reasons.length === 0) answer(200, 'ready\n')
        else answer(503, `${reasons.join('\n')}\n`)
      },
      '/metrics': async () => {
        await collect?.()
        answer(200, await metrics.registry.metrics(), metrics.registry.contentType)
      },
    }
    if (jwks)
      pages['/.well-known/jwks.json'] = async () => answer(200, JSON.stringify(await jwks()), 'application/json')
    const page = pages[new URL(request.url ?? '/', 'http://ops').pathname]
    if (!page || (request.method !== 'GET' && request.method !== 'HEAD')) return answer(404, 'not found\n')
    page().catch(() => answer(500, 'could not be read\n'))
  })
  server.requestTimeout = 10_000
  const bound = await listen(server, host, port)
  return {
    port: bound,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function listen(server: Server, host: string, first: number): Promise<number> {
  for (let port = first; ; port += 1) {
    try {
      await new Promise<void>((resolve, reject) => {
        const onListening = () => {
          server.off('error', onError)
          resolve()
        }
        // Both go, or each taken port would leave one behind.
        const onError = (error: Error) => {
          server.off('listening', onListening)
          reject(error)
        }
        server.once('error', onError)
        server.once('listening', onListening)
        server.listen(port, host)
      })
      return (server.address() as AddressInfo).port
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || first === 0) throw error
      if (port >= first + PORTS_TRIED) throw new PortInUse('TOKENMILL_METRICS_PORT', `${host}:${first} to ${port}`)
    }
  }
}
