// A migration on the embedded engine: the command starts PostgreSQL and workers, and both are killed.
import { chmodSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { ensureDevClient } from '../../cli/open/dev-client.ts'
import { makeScope } from '../../cli/open/make-scope.ts'
import { openSession, openVault } from '../../cli/open/open.ts'
import { findPostmaster } from '../../src/embedded/cluster.ts'
import { findClusterLocation } from '../../src/embedded/cluster-location.ts'
import { attach, discard } from '../../src/embedded/server.ts'
import { until } from '../support/until.ts'
import { childrenRunning, kill9, type Place, QUICK } from './bundle.ts'
import { type CardFile, disturb, newFile } from './migration.ts'

describe('every effect of a migration happens once (embedded)', () => {
  let dir: string
  let place: Place
  const files: CardFile[] = []
  beforeAll(async () => {
    dir = mkdtempSync(join(inject('runDir'), 'embedded-'))
    // If the test runs as root, the server runs under another account, which must be able to enter the directory.
    chmodSync(dir, 0o711)
    const engines = { DATABASE_URL: '', REDIS_URL: '', TOKENMILL_DATA_DIR: dir, TOKENMILL_PROCESSES: '1' }
    const env = { ...process.env, ...QUICK, ...engines }
    const session = openSession({ ...process, env }, 'test')
    try {
      const { path: clientFile, file } = await ensureDevClient(session)
      const vault = await openVault(session)
      const features = { par: false, networkTokens: false, requestor: 'MERCHANT', binDigits: 8 } as const
      const another = await makeScope(vault, { entityId: file.entity_id, ...features })
      for (const scope of [file.token_scope ?? '', another.tokenScope]) files.push(await newFile(dir, scope))
      place = { env, clientFile, ask }
    } finally {
      await session.lifetime.close()
    }
  })
  afterAll(() => discard(dir))

  /** Attaches for one statement only: a process that stayed attached would start a killed server again. */
  async function ask<R>(text: string, values: unknown[] = []): Promise<R[]> {
    const { url, release } = await attach(dir)
    const client = new Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query(text, values)
    await client.end()
    await release()
    return rows as R[]
  }

  const postmaster = async () => findPostmaster(await findClusterLocation(dir))?.pid ?? -1

  it('though its PostgreSQL was killed, and the run goes on by itself', async () => {
    const runs = await disturb(place, files[0] as CardFile, async () => kill9([await postmaster()]))
    expect(runs).toBe(1)
  })

  it('though command, workers and PostgreSQL were killed at once, and the same command continues it', async () => {
    const runs = await disturb(place, files[1] as CardFile, async ({ child }) => {
      kill9([child.pid, ...childrenRunning('worker-process', child.pid), await postmaster()])
      await child.exit
    })
    expect(runs).toBe(2)
  })

  it('and the last command leaves no server behind', async () => {
    await until(async () => (await postmaster()) === -1)
  })
})
