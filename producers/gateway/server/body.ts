// Reads the bodies of requests: JSON objects, parsed strictly, with limits on size and time. form.ts checks the
// content.
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { readObject } from '../../../src/job/envelope/strict-json.ts'
import { failureFor } from '../../../src/job/problem.ts'
import type { GatewayApp } from '../app.ts'
import { wrongBody } from './form.ts'

/** The most bytes of a body, for a route that names no other `bodyLimit`. */
export const BODY_BYTES_MAX = 64 * 1024
/**
 * How much of a body that is too large is still read: if the connection were closed at once, the answer would be lost.
 */
const DRAINED_BYTES_MAX = 1024 * 1024
/** The longest time from the head of a request to the end of its body, in ms. */
const BODY_MS_MAX = 10_000

export function takeJson(app: GatewayApp): void {
  app.removeAllContentTypeParsers()
  // Nothing is decompressed: a small body could become one of any size.
  app.addHook('preParsing', async ({ headers }) => {
    const encoding = headers['content-encoding'] ?? ''
    if (!/^\s*(identity)?\s*$/i.test(encoding)) throw wrongBody(failureFor('body_encoding', 'body'))
  })
  app.addContentTypeParser(/^application\/json\b/i, async (request: FastifyRequest, stream: IncomingMessage) => {
    // The connection ended before the whole body arrived. The body is then refused like one that isn't an object.
    const bytesMax = request.routeOptions.bodyLimit ?? BODY_BYTES_MAX
    const body = await readBody(stream, bytesMax).catch(() => Buffer.from('{'))
    if (!body) throw wrongBody(failureFor('body_too_large', 'body'))
    // Some clients always send a content type, even if a request needs no body.
    if (body.length === 0) return undefined
    const value = readObject(body)
    if (!value) throw wrongBody(failureFor('body_json', 'body'))
    return value
  })
}

/** Reads a body; undefined if it is larger than `bytesMax`. */
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

/** Closes the connection if a body doesn't arrive in time. The limit applies before credentials are checked. */
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

/** Removes the time limit of a streamed body, once its sender is authenticated. */
export function allowStreams(app: GatewayApp): void {
  app.addHook('onRequest', async ({ raw, headers, routeOptions }) => {
    if (routeOptions.config.streams?.test(headers['content-type'] ?? '')) clearTimeout(waiting.get(raw))
  })
}
