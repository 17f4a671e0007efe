// Shared by the parts of the soak: checks that are counted, and a command whose progress and memory are watched.
import { isDeepStrictEqual } from 'node:util'
import type { Installation } from '../../test/support/installation.ts'
import { startCommand } from '../../test/support/process.ts'
import { peakMiB, workersPeakMiB } from '../migrate.ts'
import type { EngineName, Place } from '../place.ts'

/** Prints whether `found` equals `expected`, and counts the check. */
export type Check = (part: string, what: string, found: unknown, expected: unknown) => void

export interface SoakOptions {
  place: Place
  engine: EngineName
  rows: number
  check: Check
}

export interface Soaked {
  summary: Record<string, unknown>
  peak: number
}

/** The most memory that a command may use, however long its input is, in MiB. */
export const RESIDENT_MIB_MAX = 400
export const PROGRESS_MS = 10_000

export function openChecks(): { check: Check; counts: { passed: number; failed: number } } {
  const counts = { passed: 0, failed: 0 }
  const check: Check = (part, what, found, expected) => {
    const holds = isDeepStrictEqual(found, expected)
    counts[holds ? 'passed' : 'failed'] += 1
    const difference = holds ? '' : `: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`
    process.stdout.write(`${holds ? '✓' : '✗'} ${part}: ${what}${difference}\n`)
  }
  return { check, counts }
}

/** Runs a command to its end. Every ten seconds prints how many rows its batches have done, and memory by process. */
export async function runCommand(installation: Installation, words: string[]): Promise<Soaked> {
  const began = performance.now()
  const child = startCommand([...words, '--client', installation.clientFile, '--json'], {
    env: installation.env as Record<string, string>,
  })
  let peak = 0
  const watching = setInterval(() => {
    peak = Math.max(peak, peakMiB(child.pid))
  }, 100)
  const tell = async () => {
    const seconds = ((performance.now() - began) / 1000).toFixed(0)
    const memory = `command ${peak} MiB, workers ${workersPeakMiB().join(' and ')} MiB`
    process.stdout.write(`  ${words[0]}: ${await countRows(installation)} rows in all after ${seconds} s; ${memory}\n`)
  }
  const telling = setInterval(tell, PROGRESS_MS)
  const { code } = await child.exit.finally(() => {
    clearInterval(watching)
    clearInterval(telling)
  })
  await tell()
  if (code !== 0 && code !== 3) throw new Error(`${words[0]} ended with ${code}: ${child.stderr()}`)
  return { summary: JSON.parse(child.stdout()) as Record<string, unknown>, peak }
}

/** A count of tokens or lines would take longer with each row, and slow down what it watches. */
async function countRows({ vault }: Installation): Promise<number> {
  const text = 'select coalesce(sum(rows_done), 0)::float8 as rows from tokenmill.batch'
  return (await vault.store.query<{ rows: number }>({ text })).rows[0]?.rows ?? 0
}
