// A server that receives webhooks: it verifies each with the published library, and answers as a test says.
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

export interface Taken {
  id: string
  path: string
  /** How often this id has come, from 1 on. */
  times: number
  body: { type: string; timestamp: string; data: Record<string, unknown> }
  headers: Record<string, string>
}

/** Answers a request, or fails in some way. `taken`: the verified webhook. */
export type Behaviour = (taken: Taken, response: ServerResponse) => void

export interface Receiver {
  origin: string
  port: number
  /** In the order in which they came. */
  taken: Taken[]
  /** Requests that the library did not verify. */
  forged: number
  /** Ids that were answered 2xx. */
  told: Set<string>
  /** The most requests that were open at once, by path. */
  atOnce: Map<string, number>
  /** Sets the behaviour of a path; the default is the answer 204. */
  behave(path: string, behaviour: Behaviour): void
  /** Sets the secrets of a path; a request is accepted if any of them verifies it. */
  trust(path: string, ...secrets: string[]): void
  close(): Promise<void>
}

export async function openReceiver(): Promise<Receiver> {
  const behaviours = new Map<string, Behaviour>()
  const secrets = new Map<string, readonly string[]>()
  const open = new Map<string, number>()
  const times = new Map<string, number>()
  const receiver = { taken: [] as Taken[], forged: 0, told: new Set<string>(), atOnce: new Map<string, number>() }

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    const now = (open.get(path) ?? 0) + 1
    open.set(path, now)
    receiver.atOnce.set(path, Math.max(now, receiver.atOnce.get(path) ?? 0))
    response.on('close', () => open.set(path, (open.get(path) ?? 1) - 1))
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString('utf8')
    const headers = request.headers as Record<string, string>
    const body = verified(text, headers, secrets.get(path) ?? [])
    if (!body) {
      receiver.forged += 1
      response.writeHead(401).end()
      return
    }
    const id = headers['webhook-id'] ?? ''
    times.set(id, (times.get(id) ?? 0) + 1)
    const taken: Taken = { id, path, times: times.get(id) ?? 0, body, headers }
    receiver.taken.push(taken)
    response.on('finish', () => {
      if (response.statusCode < 300) receiver.told.add(id)
    })
    const behave = behaviours.get(path) ?? ((_, answer) => answer.writeHead(204).end())
    behave(taken, response)
  }
  const server = createServer((request, response) => {
    take(request, response).catch(() => response.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(receiver, {
    port,
    origin: `http://127.0.0.1:${port}`,
    behave: (path: string, behaviour: Behaviour) => void behaviours.set(path, behaviour),
    trust: (path: string, ...known: string[]) => void secrets.set(path, known),
    close: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  })
}

function verified(
  text: string,
  headers: Record<string, string>,
  secrets: readonly string[],
): Taken['body'] | undefined {
  for (const secret of secrets) {
    try {
      return new Webhook(secret).verify(text, headers) as Taken['body']
    } catch {}
  }
  return undefined
}

/** Fails at the first attempts of most ids, in a way that depends on the id, and accepts later ones. */
export const hostile: Behaviour = ({ id, times }, response) => {
  const way = createHash('sha256').update(id).digest()
  const isOver = times > ((way[1] ?? 0) % 4 === 0 ? 2 : 1)
  const worst = isOver ? undefined : WAYS[(way[0] ?? 0) % WAYS.length]
  if (worst) worst(response)
  else response.writeHead(204).end()
}

const WAYS: readonly ((response: ServerResponse) => void)[] = [
  ...Array.from({ length: 6 }, () => (response: ServerResponse) => response.writeHead(204).end()),
  response => response.writeHead(500).end('no'),
  response => response.writeHead(404).end(),
  response => response.writeHead(429, { 'retry-after': '0' }).end(),
  response => response.writeHead(502).end(),
  // To a private address, which nobody asks.
  response => response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
  // Never answers.
  () => {},
  // Closes the connection.
  response => response.socket?.destroy(),
  // Announces more bytes than it sends.
  response => {
    response.writeHead(500, { 'content-length': '1000' }).write('x')
  },
  // Answers something that isn't HTTP.
  response => void response.socket?.end('SSH-2.0-no\r\n\r\n'),
  // Sends without end.
  response => {
    response.writeHead(503)
    const more = setInterval(() => response.write('x'.repeat(4_096)), 1)
    response.on('close', () => clearInterval(more))
  },
]
