// `start` runs every role that the product has: HTTP is served, and a job is worked.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePorts } from '../ops/free-ports.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { startScript } from '../support/process.ts'

let database: FreshDatabase
let installation: Installation
beforeAll(async () => {
  database = await freshDatabase()
  const engine = { name: 'postgres', prefix: '{start}', redisUrls: undefined, databaseUrl: database.url } as const
  installation = await openInstallation(engine)
})
afterAll(async () => {
  await installation?.close()
  await database?.drop()
})

it('serves HTTP, works jobs, and ends when it is told to', async () => {
  const [metrics = 0] = await freePorts(6)
  const child = startScript('cli/main.ts', ['start'], {
    env: {
      ...(installation.env as Record<string, string>),
      TOKENMILL_HTTP_PORT: '0',
      TOKENMILL_THREE_DS_PORT: '0',
      TOKENMILL_CONSOLE_PORT: '0',
      TOKENMILL_PROCESSES: '1',
      TOKENMILL_METRICS_PORT: String(metrics),
    },
  })
  const [, url = ''] = await child.line(/It serves (http:\/\/[^/]+)\/oidc/, { stream: 'stderr' })
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  const client = await installation.connect()
  const card = await client.encryptCard({ cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2031 })
  const { tokenScope } = installation.credentials
  const result = await client.call('token-create', { token_scope: tokenScope, ...card })
  expect(result).toMatchObject({ status: 'SUCCEEDED', record: { last_four: '1111' } })
  child.signal('SIGTERM')
  expect(await child.exit).toMatchObject({ code: 0 })
})
