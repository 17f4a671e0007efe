// More requests than the gateway admits, on hundreds of connections at once. Admitted requests are done once, others are
// refused at once, and repeats of these succeed later.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../../bin/sample/pan.ts'
import { redisUrl } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { type Child, startScript } from '../../support/process.ts'
import { volume } from '../../support/volume.ts'
import { basicOf, CARD, encrypted } from './bundle.ts'
import { type KeepAlive, openKeepAlive } from './keep-alive.ts'

const CALLERS = volume(400, 2_000)
const IN_FLIGHT = CALLERS / 4
/**
 * A refusal doesn't wait for the requests that are admitted, but reading all requests takes time on a busy core: it may take as
 * long as an admitted one takes there.
 */
const REFUSED_MS_MAX = 40_000

let database: FreshDatabase
let installation: Installation
let child: Child
let http: KeepAlive

beforeAll(async () => {
  database = await freshDatabase()
  const redisUrls = redisUrl()?.split(',')
  const prefix = `{load-${randomBytes(4).toString('hex')}}`
  installation = await openInstallation({
    name: redisUrls ? 'redis' : 'postgres',
    prefix,
    redisUrls,
    databaseUrl: database.url,
  })
  await installation.startWorkers({ roles: ['interactive'] })
  child = startScript('cli/main.ts', ['gateway'], {
    env: {
      ...(installation.env as Record<string, string>),
      TOKENMILL_HTTP_PORT: '0',
      TOKENMILL_LOG_LEVEL: 'info',
      TOKENMILL_GATEWAY_INFLIGHT: String(IN_FLIGHT),
      // Long, so that admitted requests are answered on a slow machine, too.
      TOKENMILL_GATEWAY_TIMEOUT_SECONDS: '200',
    },
  })
  const port = Number((await child.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' }))[1])
  http = openKeepAlive(port, CALLERS)
})
afterAll(async () => {
  http?.close()
  child?.signal('SIGTERM')
  await child?.exit
  await installation?.close()
  await database?.drop()
})

it('loses nothing and does nothing twice', async () => {
  const authorization = await basicOf(installation.clientFile)
  const bodies = await Promise.all(
    Array.from({ length: CALLERS }, async (_, index) => {
      const card = { cardNumber: panOf(index, 8), expiryMonth: 12, expiryYear: 2031 }
      return JSON.stringify({ token_scope: installation.scope, ...(await encrypted(card, installation.credentials)) })
    }),
  )
  // Every connection is opened before the first write.
  await Promise.all(bodies.map(() => http.send({ method: 'GET', path: '/healthz' })))
  const refusedMs: number[] = []
  const admittedMs: number[] = []
  const call = async (body: string, index: number) => {
    const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': `load-${index}` }
    for (;;) {
      const begun = performance.now()
      const { status, headers: said, text } = await http.send({ method: 'PUT', path: CARD, headers, body })
      const isAdmitted = status !== 429
      ;(isAdmitted ? admittedMs : refusedMs).push(performance.now() - begun)
      if (isAdmitted) return { status, id: (JSON.parse(text) as { reuse_token?: string }).reuse_token }
      await pause(Number(said['retry-after']) * 1_000)
    }
  }
  const answers = await Promise.all(bodies.map(call))
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  expect(new Set(answers.map(({ id }) => id)).size).toBe(CALLERS)
  expect(refusedMs.length).toBeGreaterThan(0)
  expect(Math.max(...refusedMs)).toBeLessThan(Math.max(REFUSED_MS_MAX, ...admittedMs))
  const { rows } = await installation.vault.store.query({
    text: `select (select count(*) from tokenmill.token) as tokens, (select count(*) from tokenmill.receipt) as receipts,
  (select count(*) from tokenmill.receipt where kind = 'reversal') as reversals`,
  })
  expect(rows).toEqual([{ tokens: CALLERS, receipts: CALLERS, reversals: 0 }])
})
