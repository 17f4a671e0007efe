// Runs the program in docs/upstream.md unchanged against a real worker and store.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Result } from '../../src/job/answer/result.ts'
import { type Engine, redisUrl } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe.skipIf(!redisUrl())('docs/upstream.md, on a real installation', () => {
  let database: FreshDatabase
  let installation: Installation
  let dir: string
  beforeAll(async () => {
    database = await freshDatabase()
    const engine: Engine = {
      name: 'redis',
      prefix: '{upstream-real}',
      redisUrls: [redisUrl() ?? ''],
      databaseUrl: database.url,
    }
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['interactive'] })
    dir = mkdtempSync(join(tmpdir(), 'upstream-real-'))
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'))
  })
  afterAll(async () => {
    await installation?.close()
    await database?.drop({ force: true })
    if (dir) rmSync(dir, { recursive: true, force: true })
  })

  async function runExample(jti: string): Promise<Result> {
    const page = readFileSync(join(root, 'docs/upstream.md'), 'utf8')
    writeFileSync(join(dir, 'upstream.ts'), /^```ts\n([\s\S]*?)^```$/m.exec(page)?.[1] ?? '')
    const env = { ...installation.env, CLIENT_FILE: installation.clientFile, JTI: jti }
    const child = spawn(process.execPath, ['upstream.ts'], { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] })
    const code = new Promise(resolve => child.once('exit', resolve))
    const [printed, complaints] = await Promise.all([text(child.stdout), text(child.stderr)])
    expect({ code: await code, complaints }).toEqual({ code: 0, complaints: '' })
    return JSON.parse(printed) as Result
  }

  it('a job made with nothing but bullmq and jose is worked and answered; the same card under its jti, encrypted again, gets the same answer', async () => {
    const first = await runExample('order-1')
    expect(first).toMatchObject({
      status: 'SUCCEEDED',
      code: 200,
      record: { last_four: '1111', token_status: 'ACTIVE' },
    })
    // The program encrypts the same card anew, and asks in another envelope.
    const { envelope: _, answers: __, ...again } = await runExample('order-1')
    expect(first).toMatchObject(again)
    const { rows } = await installation.vault.store.query<{ n: number }>({
      text: 'select count(*) as n from tokenmill.token',
    })
    expect(rows[0]?.n).toBe(1)
  })
})
