// A console with a real store and vault, and batches of two entities. A person's session is made in the store, where a test
// isn't about signing in.
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { openSession } from '../../../cli/open/open.ts'
import { serveConsole } from '../../../cli/process/console.ts'
import { makeCookie } from '../../../producers/console/server/cookie.ts'
import * as sessions from '../../../src/store/console/sessions.ts'
import type { Store } from '../../../src/store/pool.ts'
import { freePorts } from '../../ops/free-ports.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { freshDatabase } from '../../support/postgres.ts'

/** Of the keys in Redis. */
export const PREFIX = '{console}'
export const OURS = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d0001'
export const THEIRS = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d0002'

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

export interface CallOptions {
  cookie?: string | undefined
  headers?: Record<string, string>
  /** A form. */
  form?: Record<string, string>
  json?: unknown
  /** False: the headers that a browser adds for a page of the console are left out. */
  isOwn?: boolean
}

export interface Person {
  personId: string
  /** The `Cookie` header of a live session. */
  cookie: string
  sessionHash: Buffer
}

export interface PersonOptions {
  roles?: readonly string[]
  entities?: readonly string[] | null
  isLocal?: boolean
}

export interface BatchOptions {
  batchId?: string
  entityId?: string | null
  extentRows?: number | null
  rowsDone?: number
  counts?: Record<string, number>
  more?: string
}

export interface ConsoleBundle {
  installation: Installation
  origin: string
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  addPerson(name: string, options?: PersonOptions): Promise<Person>
  /** Inserts a batch's row; returns its number. `more`: assignments of SQL. */
  addBatch(options?: BatchOptions): Promise<number>
  rows<R>(text: string, values?: unknown[]): Promise<R[]>
  close(): Promise<void>
}

export async function openConsoleBundle(settings: Record<string, string> = {}): Promise<ConsoleBundle> {
  const database = await freshDatabase()
  const [port = 0] = await freePorts(1)
  const origin = `http://localhost:${port}`
  const engine = { name: 'postgres', prefix: PREFIX, redisUrls: undefined, databaseUrl: database.url } as const
  const installation = await openInstallation(engine, {
    TOKENMILL_CONSOLE_PORT: String(port),
    TOKENMILL_CONSOLE_ORIGIN: origin,
    ...settings,
  })
  const { env } = installation
  const session = openSession({ env, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }, 'console')
  await serveConsole(session)
  const { store } = installation.vault
  const rows = async <R>(text: string, values: unknown[] = []) => (await store.query<R>({ text, values })).rows
  const clientId = installation.credentials.signingKey.clientId
  return {
    installation,
    origin,
    rows,
    call: callOf(port, origin),
    addPerson: (name, options) => addPerson(store, name, options),
    async addBatch({
      batchId = randomUUID(),
      entityId = OURS,
      extentRows = 1_000,
      rowsDone = 0,
      counts = {},
      more,
    } = {}) {
      const found = await rows<{ no: number }>(
        `insert into tokenmill.batch (client_id, batch_id, entity_id, record_kind, chunk_records, layout, accepted_at, extent_chunks,
  extent_rows, rows_done, counts) values ($1, $2, $3, 'token-create', 1000, '{}', now(), $4, $5, $6, $7) returning batch_no as no`,
        [clientId, batchId, entityId, extentRows === null ? null : 1, extentRows, rowsDone, JSON.stringify(counts)],
      )
      const no = found[0]?.no ?? 0
      if (more !== undefined) await rows(`update tokenmill.batch set ${more} where batch_no = $1`, [no])
      return no
    },
    async close() {
      await session.lifetime.close()
      await installation.close()
      await database.drop()
    },
  }
}

/** A person with a session. The row has no code of the vault, so workers know nobody by it. */
export async function addPerson(
  store: Store,
  name: string,
  { roles = ['ADMIN'], entities = null, isLocal = false }: PersonOptions = {},
): Promise<Person> {
  const personId = randomUUID()
  await store.query({
    text: 'insert into tokenmill.person (person_id, name, roles, entities) values ($1, $2, $3, $4)',
    values: [personId, name, roles, entities],
  })
  const { value, hash } = makeCookie()
  await sessions.insert(store, { sessionHash: hash, personId, credentialId: null, address: '127.0.0.1', isLocal })
  return { personId, cookie: `tokenmill-console=${value}`, sessionHash: hash }
}

/** Calls a console as a browser does. */
export function callOf(port: number, origin: string): ConsoleBundle['call'] {
  return (method, path, options) => call({ port, origin }, method, path, options)
}

function call(
  { port, origin }: { port: number; origin: string },
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer> {
  const { cookie, headers = {}, form, json, isOwn = true } = options
  const body = form ? new URLSearchParams(form).toString() : json === undefined ? undefined : JSON.stringify(json)
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json'
  const own = isOwn && method !== 'GET' ? { origin, 'sec-fetch-site': 'same-origin' } : {}
  const sent = {
    ...own,
    ...(body === undefined ? {} : { 'content-type': type, 'content-length': String(Buffer.byteLength(body)) }),
    ...(cookie === undefined ? {} : { cookie }),
    ...headers,
  }
  return new Promise((resolve, reject) => {
    const asked = request({ host: 'localhost', port, method, path, headers: { host: new URL(origin).host, ...sent } })
    asked.on('error', reject)
    asked.on('response', async response => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() })
    })
    asked.end(body)
  })
}
