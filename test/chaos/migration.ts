// Migrates a file while something disturbs it, and checks the end: each card has one live token, each row one outcome,
// the sums are right, and the same file again changes nothing.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { writeSample } from '../../bin/sample/cards.ts'
import { parseReuseToken } from '../../src/token/token.ts'
import { runCommand } from '../support/command.ts'
import { type Child, type Exit, startCommand } from '../support/process.ts'
import { until } from '../support/until.ts'
import { volume } from '../support/volume.ts'
import { type Place, stateOf } from './bundle.ts'

export const CHUNK = volume(50, 100)
/** At a disturbance 12 to 14 of 48 chunks are done, 4 are in hand, 1 to 8 lie in the queue, and the rest wasn't sent. */
export const ROWS = volume(48, 200) * CHUNK
/** How often the same command is run at most. */
const RUNS_MAX = 4

export interface CardFile {
  path: string
  scope: string
  rows: number
  /** Rows of a chunk, where they aren't `CHUNK`. */
  chunk?: number
  /** The expected outcomes of its rows, by the names of the command's summary. */
  created: number
  duplicate: number
  rejected: number
}

let seed = 1

/** Writes a file of cards that no other file of this process has. */
export async function newFile(dir: string, scope: string, rows = ROWS): Promise<CardFile> {
  const path = join(dir, `cards-${seed}.csv`)
  const { good, expired, duplicate, luhn, length, month, name, broken } = await writeSample(path, {
    rows,
    seed: seed++,
    now: Date.now(),
  })
  return { path, scope, rows, created: good + expired, duplicate, rejected: luhn + length + month + name + broken }
}

export interface Run {
  child: Child
  /** `json` is empty if the command was killed. */
  end(): Promise<Exit & { stderr: string; json: Record<string, unknown> }>
}

export function startMigrate(
  { env, clientFile }: Omit<Place, 'ask'>,
  { path, scope, chunk: usual = CHUNK }: Pick<CardFile, 'path' | 'scope' | 'chunk'>,
  chunk = usual,
  more: string[] = [],
): Run {
  const given = optionsOf({ clientFile, scope, chunk })
  const child = startCommand(['migrate', path, ...given, ...more], { env: env as Record<string, string> })
  // Killed, because a command that a failed test leaves would wait for its servers for ever.
  onTestFinished(() => child.signal('SIGKILL'))
  const end = async () => {
    const exit = await child.exit
    return { ...exit, stderr: child.stderr(), json: JSON.parse(child.stdout() || '{}') as Record<string, unknown> }
  }
  return { child, end }
}

/** Runs the same command to its end, undisturbed. */
export async function migrateAgain(
  { env, clientFile }: Omit<Place, 'ask'>,
  { path, scope, chunk = CHUNK }: Pick<CardFile, 'path' | 'scope' | 'chunk'>,
) {
  const words = ['migrate', path, ...optionsOf({ clientFile, scope, chunk })]
  const { code, stdout, stderr } = await runCommand(words, { env })
  return { code, signal: null, stderr, json: JSON.parse(stdout || '{}') as Record<string, unknown> }
}

function optionsOf({ clientFile, scope, chunk }: { clientFile: string; scope: string; chunk: number }): string[] {
  return ['--scope', scope, '--client', clientFile, '--chunk', `${chunk}`, '--json']
}

/**
 * From now on each statement that stores tokens takes 50 ms longer, until `quickStoring`: otherwise a fast machine
 * could finish the file between two looks.
 */
export async function slowStoring({ ask }: Pick<Place, 'ask'>): Promise<void> {
  await ask(pauseBody('perform pg_sleep(0.05); return null;'))
  await ask(`create or replace trigger take_longer after insert on tokenmill.token
    for each statement execute function public.take_longer()`)
}

export async function quickStoring({ ask }: Pick<Place, 'ask'>): Promise<void> {
  await ask(pauseBody('return null;'))
}

const pauseBody = (body: string) =>
  `create or replace function public.take_longer() returns trigger language plpgsql as 'begin ${body} end'`

/**
 * Resolves once a quarter of the cards have tokens. Fails with the command's output if the run ended before
 * (`slowStoring`). It asks the store, because the command writes its checkpoint only once a second.
 */
export async function untilMiddle(
  { ask }: Pick<Place, 'ask'>,
  { scope, created }: CardFile,
  { child }: Run,
): Promise<void> {
  const made = async () => {
    const [row] = await ask<{ made: number }>(
      'select count(*)::integer as made from tokenmill.token where token_scope = $1',
      [scope],
    )
    return row?.made ?? 0
  }
  let now = 0
  let ended: Exit | undefined
  child.exit.then(exit => {
    ended = exit
  })
  const middle = async () => {
    now = await made()
    if (now < created / 4 && ended) throw new Error(`ended with ${ended.code} before the middle:\n${child.stderr()}`)
    return now >= created / 4 ? now : 0
  }
  const progress = () => `${now} of ${created} tokens, and the command said:\n${child.stderr()}`
  const seen = await until(middle, { what: 'a quarter of the tokens', progress })
  expect(seen).toBeLessThan(created)
}

/** Migrates a file, disturbs the run in between, and checks the end. Returns how often the command was run. */
export async function disturb(
  place: Place,
  file: CardFile,
  disturbance: (run: Run) => Promise<unknown>,
): Promise<number> {
  await slowStoring(place)
  const first = startMigrate(place, file)
  await untilMiddle(place, file, first)
  await quickStoring(place)
  await disturbance(first)
  let ended = await first.end()
  let runs = 1
  for (; ended.code !== 3; runs += 1) {
    expect(runs, ended.stderr).toBeLessThan(RUNS_MAX)
    // The run was killed, or stopped so that it can be continued.
    expect([1, 'SIGKILL'], ended.stderr).toContain(ended.signal ?? ended.code)
    ended = await migrateAgain(place, file)
  }
  expect(ended.json).toMatchObject({ variant: 'run' })
  await expectExactlyOnce(place, file, ended.json)
  return runs
}

export async function expectExactlyOnce(place: Place, file: CardFile, summary: Record<string, unknown>): Promise<void> {
  expectSums(file, summary)
  await expectOneOutcomeEach(place, file)
  const verify = ['manifest', 'verify', `${file.path}.manifest.json`, '--client', place.clientFile]
  const verified = await runCommand(verify, { env: place.env })
  expect(verified, verified.stderr).toMatchObject({ code: 0 })
  // Otherwise the test would say nothing about blocks in columns.
  const forms = await place.ask(
    `select distinct layout->>'record_form' as form from tokenmill.batch where token_scope = $1`,
    [file.scope],
  )
  expect(forms).toEqual([{ form: 'columns' }])
  const before = await stateOf(place, file.scope)
  const again = await migrateAgain(place, file)
  expect(again, again.stderr).toMatchObject({ code: 3, json: { variant: 'replay' } })
  expectSums(file, again.json)
  expect(await stateOf(place, file.scope)).toEqual(before)
}

function expectSums({ rows, created, duplicate, rejected }: CardFile, summary: Record<string, unknown>): void {
  const none = { updated: 0, unchanged: 0, failed: 0, cancelled: 0 }
  expect(summary).toMatchObject({ complete: true, rows, created, duplicate, rejected, ...none })
}

/** Expects the rows in the file's order, each once, and one token for each card. */
async function expectOneOutcomeEach(place: Place, { path, scope, rows, created }: CardFile): Promise<void> {
  const results = await readResults(`${path}.results.csv`)
  expect(results.map(({ line }) => Number(line))).toEqual(Array.from({ length: rows }, (_, index) => index + 2))
  const tokens = new Set(results.flatMap(row => (row['outcome'] === 'CREATED' ? row['reuse_token'] : [])))
  expect(tokens.size).toBe(created)
  const twins = results.filter(({ outcome }) => outcome === 'DUPLICATE')
  expect(twins.filter(twin => !tokens.has(twin['reuse_token']))).toEqual([])
  const live = `select token_id from tokenmill.token where token_scope = $1 and status <> 'DELETED'`
  const stored = (await place.ask<{ token_id: string }>(live, [scope])).map(row => row.token_id)
  expect(stored.sort()).toEqual([...tokens].map(token => parseReuseToken(token ?? '')).sort())
  expect(await stateOf(place, scope)).toMatchObject({ tokens: created, cards: created })
}

/** The rows of a results file, by column. No cell of a sample holds a comma. */
export async function readResults(path: string): Promise<Record<string, string>[]> {
  const [head = '', ...lines] = (await readFile(path, 'utf8')).trimEnd().split('\n')
  const names = head.split(',')
  return lines.map(line => Object.fromEntries(line.split(',').map((cell, index) => [names[index], cell])))
}
