// Cases (a) and (b): `tokenmill migrate` with a whole file, as a user runs it: the command and the workers are separate
// processes. The measured time runs from the command's first reading of the file to its last result row.
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { Installation } from '../test/support/installation.ts'
import { startCommand } from '../test/support/process.ts'
import type { Supervised } from '../workers/process/supervise.ts'
import { type ProcessorTime, watchProcessor } from './single/processor.ts'

export interface MigrateRun {
  rows: number
  seconds: number
  perSecond: number
  /** The highest resident memory of the command and of each worker process, in MiB; empty if there is no /proc. */
  residentMiB: { migrate: number; workers: number[] }
  /** Per row. */
  processor: ProcessorTime
}

export async function runMigrate(installation: Installation, file: string, args: string[] = []): Promise<MigrateRun> {
  await startBulkWorkers(installation)
  return migrateFile(installation, file, args)
}

/** One process for each core. */
export async function startBulkWorkers(installation: Installation): Promise<Supervised> {
  return installation.startWorkers({ processes: availableParallelism(), roles: ['bulk'] })
}

/** Migrates a file by workers that run already. */
export async function migrateFile(installation: Installation, file: string, args: string[] = []): Promise<MigrateRun> {
  const processor = await watchProcessor(installation)
  const child = startCommand(['migrate', file, '--client', installation.clientFile, '--json', ...args], {
    env: installation.env as Record<string, string>,
  })
  let migrate = 0
  const timer = setInterval(() => {
    migrate = Math.max(migrate, peakMiB(child.pid))
  }, 100)
  const exit = await child.exit.finally(() => clearInterval(timer))
  if (exit.code !== 0 && exit.code !== 3) throw new Error(`migrate ended with ${exit.code}: ${child.stderr()}`)
  const { rows, ms } = JSON.parse(child.stdout()) as { rows: number; ms: number }
  return {
    rows,
    seconds: ms / 1000,
    perSecond: (rows * 1000) / ms,
    residentMiB: { migrate, workers: workersPeakMiB() },
    processor: processor(rows),
  }
}

export function peakMiB(pid: number): number {
  try {
    return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024)
  } catch {
    return 0
  }
}

/** The highest resident memory of each worker process of this one, in MiB. */
export function workersPeakMiB(): number[] {
  return workersOf(process.pid).map(peakMiB)
}

function workersOf(parent: number): number[] {
  const processes = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return processes.map(Number).filter(pid => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      return (
        Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent &&
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('worker-process')
      )
    } catch {
      return false
    }
  })
}
