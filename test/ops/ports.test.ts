// The ports of metrics: one per role and host, and the end of a process whose port is in use.
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config.ts'
import { portAmongAll, portOf } from '../../src/ops.ts'
import { describeStore } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { startCommand } from '../support/process.ts'
import { untilReady } from '../support/ready.ts'
import { freePorts } from './free-ports.ts'

describe('the port of a role', () => {
  it('is its own where it runs by itself, and the setting where there is one', () => {
    const roles = ['gateway', 'three-ds', 'scheduler', 'workers', 'console'] as const
    expect(roles.map(role => portOf(role, undefined))).toEqual([9464, 9465, 9466, 9467, 9468])
    expect(roles.map(role => portOf(role, 9500))).toEqual([9500, 9500, 9500, 9500, 9500])
    expect(roles.map(role => portAmongAll(role))).toEqual([9464, 9465, 9466, 9467, 9468])
    expect(roles.map(role => portAmongAll(role, 9500))).toEqual([9500, 9501, 9502, 9503, 9504])
    expect(roles.map(role => portAmongAll(role, 0))).toEqual([0, 0, 0, 0, 0])
    expect(() => portAmongAll('gateway', 65_532)).toThrow(ConfigError)
  })
})

describeStore('a port of metrics that is taken', engine => {
  let installation: Installation
  let taken: number
  let holder: Server
  beforeAll(async () => {
    ;[taken = 0] = await freePorts(1)
    holder = createServer()
    await new Promise<void>(resolve => holder.listen(taken, '127.0.0.1', resolve))
    installation = await openInstallation(engine, { TOKENMILL_METRICS_PORT: String(taken), TOKENMILL_PROCESSES: '1' })
  })
  afterAll(async () => {
    holder?.close()
    await installation?.close()
  })

  it('ends each role with 1 and a line that names it', async () => {
    const env = {
      ...installation.env,
      TOKENMILL_HTTP_PORT: '0',
      TOKENMILL_THREE_DS_PORT: '0',
      TOKENMILL_CONSOLE_PORT: '0',
    }
    const roles = ['workers', 'scheduler', 'gateway', 'three-ds', 'console'].map(role => startCommand([role], { env }))
    for (const role of roles) {
      expect(await role.exit).toMatchObject({ code: 1 })
      expect(role.stderr()).toContain(
        `tokenmill: TOKENMILL_METRICS_PORT: something listens on 127.0.0.1:${taken} already; end that process, or set another port\n`,
      )
    }
  })

  it('isn’t the concern of a role that has another; the scheduler has no need of the key-encryption key', async () => {
    const env = { ...installation.env, TOKENMILL_METRICS_PORT: '0', TOKENMILL_KEK_FILE: undefined }
    const child = startCommand(['scheduler'], { env: { ...env, TOKENMILL_LOG_LEVEL: 'info' } })
    const [, port = ''] = await child.line(/"opsPort":(\d+),"msg":"scheduling"/, { stream: 'stderr' })
    expect(Number(port)).not.toBe(taken)
    await untilReady(`http://127.0.0.1:${port}`)
    child.signal('SIGTERM')
    expect(await child.exit).toMatchObject({ code: 0 })
  })

  it('doesn’t end a command, which says that it goes on without metrics', async () => {
    const child = startCommand(['results', 'follow', '--client', installation.clientFile], { env: installation.env })
    await child.line(/^tokenmill: TOKENMILL_METRICS_PORT: .*; this command goes on without metrics$/m, {
      stream: 'stderr',
    })
    await child.line(/following results/, { stream: 'stderr' })
    child.signal('SIGTERM')
    expect(await child.exit, child.stderr()).toMatchObject({ code: 0 })
  })
})
