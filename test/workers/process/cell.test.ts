// A chunk whose process was killed from outside, as where memory runs out, is tried again: its records did nothing.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { JOB_TYP } from '../../../src/job/envelope/envelope.ts'
import type { ReceivedJob } from '../../../src/queue/engine.ts'
import type { LineDeps } from '../../../workers/line/deps.ts'
import { openCell } from '../../../workers/process/cell.ts'
import { silent } from '../../producers/bundle.ts'
import { base64url } from '../../security/forge.ts'

const SCRIPT = fileURLToPath(new URL('../../support/scripts/killed-once-cell.ts', import.meta.url))

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-cell-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

it.each(['is killed', 'hangs'])(
  'is tried again if its process %s, and no record of it crashes the process',
  async how => {
    const head = base64url(JSON.stringify({ alg: 'EdDSA', kid: 'k', typ: JOB_TYP }))
    const claims = { iss: `c${'a'.repeat(25)}`, kind: 'token-batch', request: { block: { records: 100 } } }
    const job = {
      id: 'j_1',
      attempt: 1,
      stalled: 1,
      exhausted: false,
      tied: false,
      enqueuedAt: 0,
      isBackground: false,
      data: { jws: `${head}.${base64url(JSON.stringify(claims))}.AA` },
    } as unknown as ReceivedJob
    const env = { ...process.env, KILLED_FILE: join(folder, how), ...(how === 'hangs' && { HANGS: 'yes' }) }
    const cell = openCell(SCRIPT, env, { hungMs: 3_000 })
    const run = (attempt: number) =>
      cell.run({ ...job, attempt }, new AbortController().signal, { log: silent } as unknown as LineDeps)
    const first = await run(1)
    expect(first).toEqual({ retryInMs: expect.any(Number) })
    expect(await run(2)).toEqual({ done: true })
  },
)
