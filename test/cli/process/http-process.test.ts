// An HTTP role that the host can't start ends neither `start` nor the attempts to start it.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { EXIT } from '../../../cli/exit.ts'
import type { Session } from '../../../cli/open/open.ts'
import { forkHttp } from '../../../cli/process/http-process.ts'

const { execPath } = process
let folder: string
let script: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-http-process-'))
  script = join(folder, 'role.mjs')
  await writeFile(script, 'process.send({ port: process.pid })\nprocess.on("disconnect", () => process.exit())\n')
})
afterAll(() => rm(folder, { recursive: true, force: true }))
afterEach(() => {
  process.execPath = execPath
})

/** A host that refuses to start processes. */
const refuse = () => {
  process.execPath = join(folder, 'no-such-program')
}

function openSession() {
  const closers: (() => Promise<void>)[] = []
  const log = { error: vi.fn() }
  const session = {
    log,
    terminal: { env: process.env },
    lifetime: { onClose: (_name: string, close: () => Promise<void>) => closers.push(close) },
  } as unknown as Session
  return { session, log, close: () => Promise.all(closers.map(close => close())) }
}

it('says that it could not start', async () => {
  const { session, close } = openSession()
  refuse()
  const failed = await forkHttp(session, script, { name: 'console', title: 'the console' }).catch(
    (error: unknown) => error,
  )
  expect(failed).toMatchObject({
    status: EXIT.failure,
    message: expect.stringMatching(/^the console could not start: /),
  })
  await close()
})

it('is tried again until the host can start it', async () => {
  const { session, log, close } = openSession()
  const pid = await forkHttp(session, script, { name: 'gateway', title: 'the gateway' })
  refuse()
  process.kill(pid)
  await expect.poll(() => log.error.mock.calls.length).toBeGreaterThan(1)
  process.execPath = execPath
  const failures = log.error.mock.calls.length
  await new Promise(resolve => setTimeout(resolve, 2_500))
  expect(log.error.mock.calls.length).toBeLessThanOrEqual(failures + 1)
  await close()
})
