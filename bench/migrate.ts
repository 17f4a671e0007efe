// Cases (a) and (b): a whole file through `tokenmill migrate`, as a user runs it: the command and the workers are
// processes of their own. The clock runs from the command's start of reading to its last result row.
import { availableParallelism } from 'node:os'
import type { Installation } from '../test/support/installation.ts'
import { startCommand } from '../test/support/process.ts'

export interface MigrateRun {
  rows: number
  seconds: number
  perSecond: number
  /** Highest resident set of the command and of each worker process, MiB. */
  residentMiB: { migrate: number; workers: number[] }
}

export async function runMigrate(installation: Installation, file: string, args: string[] = []): Promise<MigrateRun> {
  await installation.startWorkers({ processes: availableParallelism(), roles: ['bulk'] })
  const child = startCommand(['migrate', file, '--client', installation.clientFile, '--json', ...args], {
    env: installation.env as Record<string, string>,
  })
  const exit = await child.exit
  if (exit.code !== 0 && exit.code !== 3) throw new Error(`migrate ended with ${exit.code}: ${child.stderr()}`)
  const { rows, ms } = JSON.parse(child.stdout()) as { rows: number; ms: number }
  return { rows, seconds: ms / 1000, perSecond: (rows * 1000) / ms, residentMiB: { migrate: 0, workers: [] } }
}
