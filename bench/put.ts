// `PUT /oidc/api/v2/card` with a JWE card, 100 requests a second, through gateway, queue, worker and store. Requests are
// spread evenly over time: a load tool that sends the requests of a second at once would measure its own queue.
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { panOf } from '../bin/sample/pan.ts'
import type { Installation } from '../test/support/installation.ts'
import { startCommand } from '../test/support/process.ts'
import { startInteractiveWorkers } from './single/workers.ts'

export interface PutRun {
  requests: number
  /** In ms. */
  p50: number
  p99: number
  /** How many answers had another status than 200. */
  others: number
  /** How many requests were sent, and for how many seconds. Both include the warm-up, which isn't measured. */
  sent: { requests: number; seconds: number }
}

const PER_SECOND = 100
const WARM_S = 5

interface Sender {
  /** The body of a request with a card of its own. */
  body(index: number): Promise<string>
  /** Sends a request on one of 50 connections. */
  put(body: string): Promise<{ ms: number; status: number }>
}

/** Starts a gateway; returns its URL. */
export async function startGateway(installation: Installation): Promise<string> {
  const port = 20_000 + Math.floor(Math.random() * 10_000)
  const gateway = startCommand(['gateway'], {
    env: { ...installation.env, TOKENMILL_HTTP_PORT: String(port) } as Record<string, string>,
  })
  installation.session.lifetime.onClose('gateway', async () => {
    process.kill(gateway.pid, 'SIGTERM')
    await gateway.exit
  })
  const url = `http://127.0.0.1:${port}`
  for (const began = Date.now(); ; await pause(50)) {
    if ((await fetch(`${url}/readyz`).catch(() => undefined))?.ok) break
    if (Date.now() - began > 20_000) throw new Error(`the gateway does not answer: ${gateway.stderr()}`)
  }
  return url
}

/** Starts interactive workers and a gateway. */
export async function openSender(installation: Installation): Promise<Sender> {
  await startInteractiveWorkers(installation)
  const url = await startGateway(installation)
  const client = await installation.connect({ replyTo: 'put' })
  const { user_id, api_key } = JSON.parse(await readFile(installation.clientFile, 'utf8')) as Record<
    'user_id' | 'api_key',
    string
  >
  const authorization = `Basic ${Buffer.from(`${user_id}:${api_key}`).toString('base64')}`
  const agent = new Agent({ keepAlive: true, maxSockets: 50 })
  const headers = { authorization, 'content-type': 'application/json' }
  const put = (body: string) =>
    new Promise<{ ms: number; status: number }>((resolve, reject) => {
      const began = performance.now()
      const sent = request(`${url}/oidc/api/v2/card`, { method: 'PUT', agent, headers }, response => {
        response.resume()
        response.once('end', () => resolve({ ms: performance.now() - began, status: response.statusCode ?? 0 }))
      })
      sent.once('error', reject)
      sent.end(body)
    })
  return {
    put,
    async body(index) {
      const card = await client.encryptCard({ cardNumber: panOf(index, 9), expiryMonth: 12, expiryYear: 2030 })
      return JSON.stringify({ token_scope: installation.scope, ...card })
    },
  }
}

/** Makes the requests of so many seconds; the function that it returns sends them. */
export type Put = (seconds: number) => Promise<() => Promise<PutRun>>

/** Starts interactive workers and a gateway; `put` drives them. */
export async function openPut(installation: Installation): Promise<Put> {
  const { body, put } = await openSender(installation)
  let index = 0
  return async seconds => {
    const bodies: string[] = []
    for (let n = 0; n < (seconds + WARM_S) * PER_SECOND; n += 1) {
      index += 1
      bodies.push(await body(index))
    }
    return async () => {
      const answers: Promise<{ ms: number; status: number }>[] = []
      const began = performance.now()
      for (const [n, body] of bodies.entries()) {
        const early = began + (n * 1000) / PER_SECOND - performance.now()
        if (early > 0.5) await pause(early)
        answers.push(put(body))
      }
      const measured = (await Promise.all(answers)).slice(WARM_S * PER_SECOND)
      const times = measured.map(({ ms }) => ms).sort((one, other) => one - other)
      const at = (part: number) => Math.round((times[Math.floor(times.length * part)] ?? 0) * 10) / 10
      const others = measured.filter(({ status }) => status !== 200).length
      const sent = { requests: bodies.length, seconds: (performance.now() - began) / 1000 }
      return { requests: measured.length, p50: at(0.5), p99: at(0.99), others, sent }
    }
  }
}
