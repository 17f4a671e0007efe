// A worker of an older release that starts during a run may take chunks before the sender knows of it.
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { FileRunDeps } from '../../../producers/file-run.ts'
import { readCheckpoint } from '../../../producers/migrate/checkpoint.ts'
import type { MigrateOptions } from '../../../producers/migrate/options.ts'
import { migrate } from '../../../producers/migrate/run.ts'
import type { Result } from '../../../src/job/result.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { openRedis } from '../../../src/queue/open.ts'
import { describeRedis, redisUrl } from '../../support/engines.ts'
import { testPan } from '../../support/test-pan.ts'
import { type FakeWorker, fakeWorker, makeParties, type Parties, silent } from '../bundle.ts'
import { HEADER, profile } from '../rows/profile/profiled.ts'

const OWNER = { provider: 'square', card_id: '{id}' }

describeRedis('a worker that does not know on_file', () => {
  let folder: string
  let queues: Queues
  let parties: Parties
  let worker: FakeWorker
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tokenmill-older-'))
    const prefix = `{older-worker-${process.pid}-${Date.now()}}`
    queues = await openRedis([redisUrl() ?? ''], { prefix, lockMs: 30_000, log: silent })
    parties = await makeParties()
    worker = fakeWorker(queues, parties, ['token-batch'], async ({ claims }, answer) => {
      await answer({ records: [outcomeOf(Number(claims.jti.split('-').at(-1)))] })
      return undefined
    })
  })
  afterEach(async () => {
    await worker.close()
    await queues.obliterate('token-batch')
    await queues.close()
    await rm(folder, { recursive: true, force: true })
  })

  /** The older worker refuses the third chunk. */
  const outcomeOf = (chunk: number): NonNullable<Result['records']>[number] => ({
    ...{ line: chunk + 2, reference: `c_${chunk}` },
    ...(chunk === 2
      ? { outcome: 'REJECTED', code: 400, reason: 'field_unknown', field: 'body.on_file' }
      : { outcome: 'CREATED', code: 200 }),
  })
  const scope = randomUUID()
  const run = async (more: Partial<MigrateOptions> = {}) => {
    const file = join(folder, 'cards.csv')
    const rows = Array.from({ length: 5 }, (_, index) => `c_${index},${testPan(index)},12,2030,Ada`)
    await writeFile(file, [HEADER, ...rows, ''].join('\n'))
    const options: MigrateOptions = {
      ...{ file, profile: profile({ on_file: OWNER }), batchId: 'b-older', scope, ignoreUnknown: false },
      ...{ echo: [], dryRun: false, onConflict: 'update', onExpired: 'import', chunk: 1, inFlight: 2 },
      ...{ recordKind: 'token-create', again: false },
      ...more,
    }
    const deps: FileRunDeps = {
      ...{ queues, credentials: parties.credentials, clock: Date.now, log: silent, features: async () => ['on_file'] },
      stream: { isTTY: false, write: () => true } as unknown as NodeJS.WriteStream,
      stop: new AbortController().signal,
    }
    return migrate(options, deps)
  }

  it('stops the run before its rejections are written, and says that --again is needed, each time', async () => {
    for (const _ of ['first', 'same command']) {
      const error = await run().catch(thrown => thrown)
      expect(error).toMatchObject({ name: 'ConfigError' })
      expect(error.message).toMatch(/rejected 1 rows of chunk 2 of batch b-older.*upgrade all workers.*with --again/)
    }
    const results = join(folder, 'cards.csv.results.csv')
    expect((await readCheckpoint(results))?.next_chunk).toBeLessThanOrEqual(2)
    expect(await readFile(results, 'utf8')).not.toContain('REJECTED')
  })

  it('costs a dry run nothing: the same command may be run again', async () => {
    await expect(run({ dryRun: true })).rejects.toThrow(/then run the same command again/)
  })
})
