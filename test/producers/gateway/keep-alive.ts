// An HTTP client for many requests, whose connections stay open.
import { Agent, type IncomingHttpHeaders, request } from 'node:http'

export interface Sent {
  method: string
  path: string
  headers?: Record<string, string>
  body?: string | Buffer | undefined
}

export interface Received {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

export interface KeepAlive {
  send(sent: Sent): Promise<Received>
  close(): void
}

export function openKeepAlive(port: number, connections: number): KeepAlive {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, maxFreeSockets: connections })
  return {
    send: ({ method, path, headers = {}, body }) =>
      new Promise((resolve, reject) => {
        // Node sends no length for the body of a GET or DELETE by itself, so the server would read the body as the next
        // request.
        const framed = body === undefined ? headers : { ...headers, 'content-length': `${Buffer.byteLength(body)}` }
        const asked = request({ host: '127.0.0.1', port, method, path, headers: framed, agent }, answer => {
          const chunks: Buffer[] = []
          answer.on('data', chunk => chunks.push(chunk as Buffer))
          answer.on('end', () =>
            resolve({
              status: answer.statusCode ?? 0,
              headers: answer.headers,
              text: Buffer.concat(chunks).toString('utf8'),
            }),
          )
          answer.on('error', reject)
        })
        asked.on('error', reject)
        asked.end(body)
      }),
    close: () => agent.destroy(),
  }
}
