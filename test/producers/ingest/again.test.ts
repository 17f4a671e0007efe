// A run beside or after another run of the same file: it believes no answer that was left for the other one, and two never
// write one results file.
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../../cli/open/installation-key.ts'
import type { FileRunDeps } from '../../../producers/file-run.ts'
import { ingest } from '../../../producers/ingest/run.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { answer, silent } from '../bundle.ts'
import { CSV_HEADER, csvRowOf, transactionOf } from './sample.ts'

const ROWS = 300
const CHUNK = 100

describeOnRedis('an ingest of a file', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(() => installation?.close())

  async function sample(name: string): Promise<string> {
    const file = join(installation.dataDir, name)
    const rows = Array.from({ length: ROWS }, (_, index) =>
      csvRowOf(transactionOf(index, { entity: ENTITY, seed: name })),
    )
    await writeFile(file, `${[CSV_HEADER, ...rows].join('\n')}\n`)
    return file
  }
  const run = (file: string, batchId: string) => {
    const { queues, credentials } = installation
    const deps: FileRunDeps = {
      queues,
      credentials,
      clock: Date.now,
      log: silent,
      stream: { isTTY: false, write: () => true } as unknown as NodeJS.WriteStream,
      stop: new AbortController().signal,
    }
    return ingest({ file, chunk: CHUNK, inFlight: 4, batchId }, deps)
  }

  it('takes no answer that an earlier run left unread for an answer to its own chunks', async () => {
    const { queues, credentials, vault } = installation
    const key = await openInstallationKey(vault.store, vault.halves)
    const batchId = 'left-unread'
    const replyTo = `l${createHash('sha256').update(batchId).digest('hex').slice(0, 24)}`
    for (const number of [0, 2])
      await answer(
        queues,
        { credentials, installation: key },
        { jti: `${batchId}-${number}`, kind: 'transaction-batch', reply_to: replyTo },
        { status: 'FAILED', code: 500, record: undefined },
      )
    const file = await sample('unread.csv')
    const { counts, complete } = await run(file, batchId)
    expect({ complete, counts }).toMatchObject({ complete: true, counts: { CREATED: ROWS, FAILED: 0 } })
  })

  it('is refused while another run writes its results file, which stays whole', async () => {
    const file = await sample('twice.csv')
    const ends = await Promise.allSettled([run(file, 'one'), run(file, 'other')])
    const refused = ends.flatMap(end => (end.status === 'rejected' ? [String(end.reason)] : []))
    expect(refused).toEqual([expect.stringContaining(`is being written by process ${process.pid}`)])
    expect(await readFile(`${file}.results.csv`, 'utf8')).toBe('line,transaction_uid,outcome,code,reason,field\n')
    expect(await run(file, 'one')).toMatchObject({ complete: true, rows: ROWS })
  })
})
