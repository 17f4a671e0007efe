// What the tests of commands share: a database, a data directory, and a terminal that records the output. Commands run
// in this process, as `main.ts` runs them.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import pg from 'pg'
import { run } from '../../cli/main.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

export interface Said {
  status: number
  stdout: string
  stderr: string
  /** Standard output as JSON. */
  json<T = Record<string, unknown>>(): T
}

export interface Bench {
  url: string
  dataDir: string
  env: NodeJS.ProcessEnv
  cli(words: string[], options?: { stdin?: string; env?: NodeJS.ProcessEnv }): Promise<Said>
  /** Runs a statement as the owner, or as `role`, and returns its rows. */
  rows<R extends pg.QueryResultRow>(text: string, options?: { role?: string; values?: unknown[] }): Promise<R[]>
  close(): Promise<void>
}

export async function openBench(options: { empty?: boolean } = {}): Promise<Bench> {
  const database: FreshDatabase = await freshDatabase(options)
  const { url } = database
  const dataDir = await mkdtemp(join(tmpdir(), 'tokenmill-cli-'))
  const env: NodeJS.ProcessEnv = {
    DATABASE_URL: url,
    TOKENMILL_DATA_DIR: dataDir,
    TOKENMILL_KEK_FILE: join(dataDir, 'kek'),
  }
  return {
    url,
    dataDir,
    env,
    cli: (words, given = {}) => cli(words, { ...given, env: { ...env, ...given.env } }),
    async rows(text, { role, values = [] } = {}) {
      const client = new pg.Client({ connectionString: url, ...(role ? { options: `-c role=${role}` } : {}) })
      await client.connect()
      try {
        return (await client.query(text, values)).rows
      } finally {
        await client.end()
      }
    },
    async close() {
      await database.drop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Streams for a command's output, and what it has written to them so far. */
export function openSaid() {
  const said = { stdout: '', stderr: '' }
  const keep = (name: keyof typeof said) =>
    new Writable({
      write(chunk, _encoding, done) {
        said[name] += String(chunk)
        done()
      },
    })
  return { said, keep }
}

export async function cli(
  words: string[],
  { stdin = '', env }: { stdin?: string; env: NodeJS.ProcessEnv },
): Promise<Said> {
  const { said, keep } = openSaid()
  // With locks of the usual length a bulk command would lower the priority of this process, for all tests that follow.
  const own = { TOKENMILL_LOCK_SECONDS: '4', ...env }
  const terminal = { env: own, stdin: Readable.from([stdin]), stdout: keep('stdout'), stderr: keep('stderr') }
  const status = await run(words, terminal)
  return { status, ...said, json: () => JSON.parse(said.stdout) }
}
