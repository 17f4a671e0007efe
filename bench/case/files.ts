// Cases of whole files, and their references: (a), (b), (m), and (d) and (e) alone.
import { availableParallelism } from 'node:os'
import { writeSample } from '../../bin/sample/cards.ts'
import { runBare } from '../bare.ts'
import { type DecryptRun, runDecrypt } from '../decrypt.ts'
import { writeEncrypted } from '../encrypted.ts'
import type { Line } from '../line.ts'
import { migrateFile, runMigrate } from '../migrate.ts'
import { runNaive } from '../naive.ts'
import { meanOf } from '../single/processor.ts'
import { type Asked, fileOf, onItsOwn } from './asked.ts'

const ENCRYPTED_MAX = 100_000
/** How many jobs of the naive form are at once, and how many there are. */
const NAIVE = [
  { concurrency: 1, jobs: 5_000 },
  { concurrency: 20, jobs: 20_000 },
  { concurrency: 50, jobs: 20_000 },
] as const
const BARE = 'd: bare loop'
export const RSA = `e: RSA-2048, ${availableParallelism()} cores`

/** (a), compared with (d), which is measured before and after it, and with the naive way. */
export async function wholeFile(asked: Asked): Promise<Line[]> {
  const { engine, rows } = asked
  const file = fileOf(asked, 'cards.csv')
  await writeSample(file, { rows, seed: 1, now: Date.now() })
  const bare = () => onItsOwn(asked, installation => runBare(installation, rows))
  const before = await bare()
  const { perSecond, processor, residentMiB } = await onItsOwn(asked, installation => runMigrate(installation, file))
  const line = { case: 'a: migrate, whole file', engine, rows, perSecond, processor, residentMiB }
  const lines: Line[] = [{ ...line, ...besides(BARE, perSecond, before, await bare()) }]
  if (engine !== 'redis') return lines
  for (const { concurrency, jobs } of NAIVE) {
    const naive = await onItsOwn(asked, installation => runNaive(installation, Math.min(rows, jobs), concurrency))
    lines.push({ ...line, ...besides(`one job and INSERT a card, ${concurrency} at once`, perSecond, naive) })
  }
  return lines
}

/** (m): a file whose cards are all known, as a new batch. */
export async function knownCards(asked: Asked): Promise<Line[]> {
  const { engine, rows } = asked
  const file = fileOf(asked, 'known.csv')
  await writeSample(file, { rows, seed: 2, now: Date.now() })
  return onItsOwn(asked, async installation => {
    const first = await runMigrate(installation, file)
    const out = ['--results', `${file}.again.csv`, '--manifest', `${file}.again.json`]
    const { perSecond, processor, residentMiB } = await migrateFile(installation, file, ['--again', ...out])
    const line = { case: 'm: migrate --again, cards known', engine, rows, perSecond, processor, residentMiB }
    return [{ ...line, ...besides('the same file before', perSecond, first) }]
  })
}

/** (b). */
export async function encryptedFile(asked: Asked): Promise<Line[]> {
  const rows = Math.min(asked.rows, ENCRYPTED_MAX)
  const file = fileOf(asked, 'encrypted.csv')
  return onItsOwn(asked, async installation => {
    await writeEncrypted(file, rows, installation)
    const before = await runDecrypt()
    const { perSecond, processor, residentMiB } = await runMigrate(installation, file)
    const line = { case: 'b: migrate, a JWE a row', engine: asked.engine, rows, perSecond, processor, residentMiB }
    return [{ ...line, ...besides(RSA, perSecond, before, await runDecrypt()) }]
  })
}

/** (d) alone. */
export async function bareLoop(asked: Asked): Promise<Line[]> {
  const { perSecond, processor } = await onItsOwn(asked, installation => runBare(installation, asked.rows))
  return [{ case: BARE, engine: asked.engine, rows: asked.rows, perSecond, processor }]
}

/** (e) alone. */
export async function decryption({ engine }: Asked): Promise<Line[]> {
  return [{ case: RSA, engine, ...(await runDecrypt()) }]
}

/** The members of a line about its reference: the mean of its measurements. */
export function besides(limit: string, perSecond: number, one: Measured, other: Measured = one): Partial<Line> {
  const limitPerSecond = (one.perSecond + other.perSecond) / 2
  const limitProcessor = meanOf(one.processor, other.processor)
  return { limit, limitPerSecond, ratio: perSecond / limitPerSecond, limitProcessor }
}
type Measured = Pick<DecryptRun, 'perSecond' | 'processor'>
