// Webhooks to several endpoints of one host don't wait for each other.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openWebhooks, type Webhooks } from '../../../workers/webhook/post.ts'

const ANSWER_MS = 50
/** More than one endpoint gets at the same time. */
const POSTS = 12

let server: Server
let webhooks: Webhooks
let origin: string
beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume()
    if (request.url !== '/hangs') setTimeout(() => response.writeHead(204).end(), ANSWER_MS)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  webhooks = openWebhooks(['127.0.0.1'], { timeoutMs: 60_000 })
})
afterAll(async () => {
  await webhooks?.close()
  server?.closeAllConnections()
  server?.close()
})

const post = (path: string, by = webhooks) =>
  by.post({ url: `${origin}${path}` }, { id: 'x', timestamp: 1, signature: 'v1,x', body: '{}' })

it('endpoints of one host do not wait for one another, not even for one that hangs', async () => {
  const hanging = Promise.all(Array.from({ length: 4 }, () => post('/hangs')))
  const answers = await Promise.all(Array.from({ length: POSTS }, (_, n) => post(`/${n % 3}`)))
  expect(answers).toEqual(answers.map(() => ({ status: 204, retryAfter: undefined })))
  expect(await Promise.race([hanging, 'hangs'])).toBe('hangs')
  const hasty = openWebhooks(['127.0.0.1'], { timeoutMs: 200 })
  expect(await post('/hangs', hasty)).toEqual({ reason: 'timeout' })
  await hasty.close()
  server.closeAllConnections()
  await hanging
})
