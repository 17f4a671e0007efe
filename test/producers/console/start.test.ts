// `start` with a console that can't start: it says so, and the other roles run.
import { createServer } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePorts } from '../../ops/free-ports.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { startScript } from '../../support/process.ts'

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

it('goes on without a console whose port is taken, or whose origin is wrong', async () => {
  const taken = createServer()
  const [port = 0] = await freePorts(1)
  await new Promise<void>(resolve => taken.listen(port, '127.0.0.1', resolve))
  const wrong: [Record<string, string>, RegExp][] = [
    [{ TOKENMILL_CONSOLE_PORT: String(port) }, /The console does not run: the console could not start/],
    [
      { TOKENMILL_CONSOLE_PORT: '0', TOKENMILL_CONSOLE_ORIGIN: 'http://console.example' },
      /The console does not run: TOKENMILL_CONSOLE_ORIGIN: must be https/,
    ],
  ]
  for (const [env, line] of wrong) {
    const [metrics = 0] = await freePorts(6)
    const child = startScript('cli/main.ts', ['start'], {
      env: {
        ...(installation.env as Record<string, string>),
        TOKENMILL_HTTP_PORT: '0',
        TOKENMILL_THREE_DS_PORT: '0',
        TOKENMILL_PROCESSES: '1',
        TOKENMILL_METRICS_PORT: String(metrics),
        ...env,
      },
    })
    const [, url = ''] = await child.line(/It serves (http:\/\/[^/]+)\/oidc/, { stream: 'stderr' })
    expect(child.stderr()).toMatch(line)
    expect((await fetch(url)).status).toBeLessThan(500)
    child.signal('SIGTERM')
    expect(await child.exit).toMatchObject({ code: 0 })
  }
  await new Promise(resolve => taken.close(resolve))
})
