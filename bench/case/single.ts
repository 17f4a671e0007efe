// Cases of single jobs: (c), (j), (l) and (n).
import { writeFile } from 'node:fs/promises'
import type { Installation } from '../../test/support/installation.ts'
import { startCommand } from '../../test/support/process.ts'
import { runDecrypt } from '../decrypt.ts'
import type { Line } from '../line.ts'
import { workersPeakMiB } from '../migrate.ts'
import { createsOf } from '../single/beside.ts'
import { runHops } from '../single/hops.ts'
import { watchProcessor } from '../single/processor.ts'
import { runPuts } from '../single/puts.ts'
import { runLifecycle, runSingle, type SingleRun } from '../single/run.ts'
import { startInteractiveWorkers } from '../single/workers.ts'
import { type Asked, fileOf, onItsOwn } from './asked.ts'
import { besides, RSA } from './files.ts'

/** Fewer single jobs would measure the start of the processes most of all: each costs some 3 s of processor time. */
const SINGLES_MAX = 20_000
const countOf = ({ rows }: Asked) => Math.min(rows, SINGLES_MAX)

/** (c). */
export async function createdSingly(asked: Asked): Promise<Line[]> {
  const run = await onItsOwn(asked, installation => runSingle(installation, countOf(asked)))
  const line = { case: 'c: token-create, one by one', engine: asked.engine, ...run }
  return [{ ...line, ...besides(RSA, run.perSecond, await runDecrypt()) }]
}

/** (n). */
export async function submitted(asked: Asked): Promise<Line[]> {
  const file = fileOf(asked, 'creates.ndjson')
  const run = await onItsOwn(asked, installation => runSubmit(installation, file, countOf(asked)))
  const line = { case: 'n: token-create through submit', engine: asked.engine, ...run }
  return [{ ...line, ...besides(RSA, run.perSecond, await runDecrypt()) }]
}

/** (j). Redis only. */
export async function lifecycleJobs(asked: Asked): Promise<Line[]> {
  if (asked.engine !== 'redis') return []
  const run = await onItsOwn(asked, installation => runLifecycle(installation, countOf(asked)))
  const hops = await onItsOwn(asked, installation => runHops(installation, countOf(asked) * 2))
  const line = { case: 'j: token-lifecycle, one by one', engine: asked.engine, ...run }
  return [{ ...line, ...besides('two hops with nothing done in them', run.perSecond, hops) }]
}

/** (l). */
export async function putRate(asked: Asked): Promise<Line[]> {
  const run = await onItsOwn(asked, installation => runPuts(installation, countOf(asked)))
  const creates = await onItsOwn(asked, installation => runSingle(installation, countOf(asked)))
  const line = { case: 'l: PUT, 50 connections', engine: asked.engine, ...run }
  return [{ ...line, ...besides('c: token-create, one by one', run.perSecond, creates) }]
}

/** The whole command, with its start and end. */
async function runSubmit(
  installation: Installation,
  file: string,
  rows: number,
): Promise<SingleRun & { residentMiB: { workers: number[] } }> {
  await writeFile(file, await createsOf(installation, rows))
  await startInteractiveWorkers(installation)
  const processor = await watchProcessor(installation)
  const began = performance.now()
  const command = startCommand(['submit', file, '--client', installation.clientFile], {
    env: installation.env as Record<string, string>,
  })
  const { code } = await command.exit
  const perSecond = (rows * 1000) / (performance.now() - began)
  const used = processor(rows)
  if (code !== 0) throw new Error(`submit ended with ${code}: ${command.stderr()}`)
  return { rows, perSecond, processor: used, residentMiB: { workers: workersPeakMiB() } }
}
