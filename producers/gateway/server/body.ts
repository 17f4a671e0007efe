// Bodies of requests: JSON objects read strictly, within a size and a time. form.ts judges what a body says.
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { readObject } from '../../../src/job/envelope/strict-json.ts'
import type { GatewayApp } from '../app.ts'
import { declineFor } from './error-bodies.ts'
import { wrongBody } from './form.ts'

/** Of a route that names no other `bodyLimit`. */
export const BODY_BYTES_MAX = 64 * 1024
/** So much of a body that is too large is still read: a connection that is closed at once loses the answer. */
const DRAINED_BYTES_MAX = 1024 * 1024
/** The longest time from the head of a request to the end of its body. */
const BODY_MS_MAX = 10_000

export function takeJson(app: GatewayApp): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(/^application\/json\b/i, async (request: FastifyRequest, stream: IncomingMessage) => {
    // A body that broke off is no object either; its sender is gone.
    const bytesMax = request.routeOptions.bodyLimit ?? BODY_BYTES_MAX
    const body = await readBody(stream, bytesMax).catch(() => Buffer.from('{'))
    if (!body) throw wrongBody(declineFor('body_too_large', 'body'))
    // Some clients always name a type, and send no body where none is needed.
    if (body.length === 0) return undefined
    const value = readObject(body)
    if (!value) throw wrongBody(declineFor('body_json', 'body'))
    return value
  })
}

/** Undefined for a body that is too large. */
async function readBody(stream: IncomingMessage, bytesMax: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= bytesMax) chunks.push(chunk)
    else if (bytes > DRAINED_BYTES_MAX) return undefined
  }
  return bytes <= bytesMax ? Buffer.concat(chunks) : undefined
}

const waiting = new WeakMap<IncomingMessage, NodeJS.Timeout>()

/** Closes the connection of a body that doesn't come in time. This holds before credentials are checked. */
export function limitBodyTime(app: GatewayApp): void {
  app.addHook('onRequest', async ({ raw }) => {
    if (raw.complete) return
    const timer = setTimeout(() => {
      if (!raw.complete) raw.destroy()
    }, BODY_MS_MAX).unref()
    waiting.set(raw, timer)
    raw.once('close', () => clearTimeout(timer))
  })
}

/** Takes the time limit off a streamed body, once its sender is known. */
export function allowStreams(app: GatewayApp): void {
  app.addHook('onRequest', async ({ raw, headers, routeOptions }) => {
    if (routeOptions.config.streams?.test(headers['content-type'] ?? '')) clearTimeout(waiting.get(raw))
  })
}
