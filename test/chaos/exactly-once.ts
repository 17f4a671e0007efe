// The law of a migration that is disturbed: whatever dies in its midst, it ends with each card having one live token,
// each row one outcome, and a second run changing nothing. How it is disturbed is the caller's.
import { expect } from 'vitest'
import { parseReuseToken } from '../../src/token/token.ts'
import { startCommand } from '../support/process.ts'
import { type Chaos, type File, newFile, readResults, rows, startMigrate, stateOf, untilMiddle } from './bundle.ts'

export const ROWS = 20_000
export const CHUNK = 100
/** How often the same command is given again at most. */
const RUNS_MAX = 4

/** Migrates a file, disturbs that in its midst, and proves the law. Answers how often the command was run. */
export async function disturb(chaos: Chaos, disturbance: (run: ReturnType<typeof startMigrate>) => Promise<void>): Promise<number> {
  const file = await newFile(chaos, ROWS)
  const first = startMigrate(chaos, file, ['--chunk', `${CHUNK}`])
  await untilMiddle(chaos, file, CHUNK)
  await disturbance(first)
  let ended = await first.end()
  let runs = 1
  for (; ended.code !== 3; runs += 1) {
    expect(runs, ended.stderr).toBeLessThan(RUNS_MAX)
    // Killed, or stopped in a state that can be continued: nothing else.
    expect(ended.signal ?? ended.code, ended.stderr).toSatisfy(end => end === 'SIGKILL' || end === 1)
    ended = await startMigrate(chaos, file, ['--chunk', `${CHUNK}`]).end()
  }
  expectSums(file, ended.json)
  await expectOneOutcomeEach(chaos, file)
  await expectProvable(chaos, file)
  await expectNothingChangedAgain(chaos, file)
  return runs
}

function expectSums(file: File, json: Record<string, unknown>): void {
  expect(json).toMatchObject({
    complete: true,
    rows: file.rows,
    created: file.cards,
    duplicate: file.duplicates,
    rejected: file.rejected,
    updated: 0,
    unchanged: 0,
    failed: 0,
    cancelled: 0,
  })
}

/** Rows in file order with one outcome each; what took effect names a token, and each card's is another. */
export async function expectOneOutcomeEach(chaos: Chaos, file: File): Promise<void> {
  const results = await readResults(`${file.path}.results.csv`)
  expect(results.map(({ line }) => Number(line))).toEqual(Array.from({ length: file.rows }, (_, index) => index + 2))
  const created = results.filter(({ outcome }) => outcome === 'CREATED').map(row => row['reuse_token'] ?? '')
  expect(new Set(created).size).toBe(file.cards)
  for (const row of results) if (row['outcome'] === 'DUPLICATE') expect(created).toContain(row['reuse_token'])
  const stored = await rows<{ token_id: string }>(
    chaos,
    `select token_id from tokenmill.token where token_scope = $1 and status <> 'DELETED'`,
    [file.scope],
  )
  expect(stored.map(row => row.token_id).sort()).toEqual(created.map(token => parseReuseToken(token)).sort())
  expect(await stateOf(chaos, file.scope)).toMatchObject({ tokens: file.cards, cards: file.cards, deleted: 0 })
}

/** The manifest's signature, digests and sums. */
async function expectProvable({ installation }: Chaos, file: File): Promise<void> {
  const verify = ['manifest', 'verify', `${file.path}.manifest.json`, '--client', installation.clientFile]
  const verified = startCommand(verify, { env: installation.env as Record<string, string> })
  expect(await verified.exit, verified.stderr()).toMatchObject({ code: 0 })
}

async function expectNothingChangedAgain(chaos: Chaos, file: File): Promise<void> {
  const before = await stateOf(chaos, file.scope)
  const again = await startMigrate(chaos, file, ['--chunk', `${CHUNK}`]).end()
  expect(again, again.stderr).toMatchObject({ code: 3, json: { variant: 'replay' } })
  expectSums(file, again.json)
  expect(await stateOf(chaos, file.scope)).toEqual(before)
}
