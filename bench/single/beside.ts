// Cases (f), (g) and (k): the latency of `PUT /oidc/api/v2/card` alone, beside `migrate`, and beside `submit` of single
// creates. What runs beside the PUTs begins before the first one and outlasts the last one.
import { writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { writeSample } from '../../bin/sample/cards.ts'
import { panOf } from '../../bin/sample/pan.ts'
import type { Installation } from '../../test/support/installation.ts'
import { startCommand } from '../../test/support/process.ts'
import { startBulkWorkers } from '../migrate.ts'
import { openPut, type Put, type PutRun } from '../put.ts'
import { type ProcessorTime, watchProcessor } from './processor.ts'

/** `processor`: per card stored. */
export interface AloneRun extends PutRun {
  processor: ProcessorTime
}

/** `besidePerSecond`: how many cards per second the work beside the PUTs stored. `processor` counts its cards, too. */
export interface BesideRun extends AloneRun {
  besidePerSecond: number
}

const ALONE_S = 15
const BESIDE_S = 12
/** More than can be migrated while PUTs are measured. */
const FILE_ROWS = 1_000_000
const SUBMITTED = 20_000

/** (f). */
export async function putAlone(installation: Installation): Promise<AloneRun> {
  const put = await openPut(installation)
  const send = await put(ALONE_S)
  const processor = await watchProcessor(installation)
  const run = await send()
  return { ...run, processor: processor(run.sent.requests) }
}

/** (g). `file` is written. Throws if the migration ends before the PUTs. */
export async function putBesideMigration(installation: Installation, file: string): Promise<BesideRun> {
  await writeSample(file, { rows: FILE_ROWS, seed: 3, now: Date.now() })
  const put = await openPut(installation)
  await startBulkWorkers(installation)
  return putBeside(installation, put, ['migrate', file, '--json'])
}

/** (k). `file` is written. Throws if the submitted jobs end before the PUTs. */
export async function putBesideSubmit(installation: Installation, file: string): Promise<BesideRun> {
  await writeFile(file, await createsOf(installation, SUBMITTED))
  const put = await openPut(installation)
  return putBeside(installation, put, ['submit', file])
}

/** The lines of a file of creates, for `submit`. */
export async function createsOf(installation: Installation, count: number): Promise<string> {
  const client = await installation.connect({ replyTo: 'sealing' })
  const lines: string[] = []
  for (let index = 0; index < count; index += 1) {
    const card = await client.encryptCard({ cardNumber: panOf(index, 5), expiryMonth: 12, expiryYear: 2030 })
    lines.push(JSON.stringify({ kind: 'token-create', request: { token_scope: installation.scope, ...card } }))
  }
  return `${lines.join('\n')}\n`
}

/** Runs a command of the client; the PUTs begin when it has stored its first card. */
async function putBeside(installation: Installation, put: Put, args: string[]): Promise<BesideRun> {
  const env = installation.env as Record<string, string>
  const command = startCommand([...args, '--client', installation.clientFile], { env })
  let hasEnded = false
  command.exit.then(() => {
    hasEnded = true
  })
  while ((await countTokens(installation)) === 0) {
    if (hasEnded) throw new Error(`${args[0]} has ended: ${command.stderr()}`)
    await pause(50)
  }
  const beside = await measure(installation, put)
  if (hasEnded) throw new Error(`${args[0]} ended before the PUTs`)
  command.signal('SIGINT')
  await command.exit
  return beside
}

async function measure(installation: Installation, put: Put): Promise<BesideRun> {
  const send = await put(BESIDE_S)
  const before = await countTokens(installation)
  const processor = await watchProcessor(installation)
  const run = await send()
  const stored = (await countTokens(installation)) - before
  const besidePerSecond = (stored - run.sent.requests) / run.sent.seconds
  return { ...run, besidePerSecond, processor: processor(stored) }
}

async function countTokens({ vault }: Installation): Promise<number> {
  const { rows } = await vault.store.query<{ count: number }>({ text: 'select count(*) as count from tokenmill.token' })
  return rows[0]?.count ?? 0
}
