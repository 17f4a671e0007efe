// Bodies of requests: JSON objects read strictly, within a size and a time. What a body says is judged in form.ts.
import type { IncomingMessage } from 'node:http'
import { readObject } from '../../../src/job/envelope/strict-json.ts'
import type { GatewayApp } from '../app.ts'
import { declineFor } from './error-bodies.ts'
import { wrongBody } from './form.ts'

export const BODY_BYTES_MAX = 64 * 1024
/** What is read of a body that is too large: whoever closes on a sender takes the answer away from him. */
const DRAINED_BYTES_MAX = 1024 * 1024
/** From the head of a request to the end of its body. */
const BODY_MS_MAX = 10_000

export function takeJson(app: GatewayApp): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(/^application\/json\b/i, async (_request: unknown, stream: IncomingMessage) => {
    // One that broke off is no object either; its sender is gone.
    const body = await readBody(stream).catch(() => Buffer.from('{'))
    if (!body) throw wrongBody(declineFor('body_too_large', 'body'))
    // Some clients always name a type, and send nothing where nothing is asked for.
    if (body.length === 0) return undefined
    const value = readObject(body)
    if (!value) throw wrongBody(declineFor('body_json', 'body'))
    return value
  })
}

/** Undefined for one that is too large. */
async function readBody(stream: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= BODY_BYTES_MAX) chunks.push(chunk)
    else if (bytes > DRAINED_BYTES_MAX) return undefined
  }
  return bytes <= BODY_BYTES_MAX ? Buffer.concat(chunks) : undefined
}

const waiting = new WeakMap<IncomingMessage, NodeJS.Timeout>()

/** A body that doesn't come in time is not waited for: its connection is closed. Before credentials are looked at. */
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

/** A streamed body may take its time, once it is known whose it is. */
export function allowStreams(app: GatewayApp): void {
  app.addHook('onRequest', async ({ raw, headers, routeOptions }) => {
    if (routeOptions.config.streams?.test(headers['content-type'] ?? '')) clearTimeout(waiting.get(raw))
  })
}
