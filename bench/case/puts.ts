// Cases of PUTs of a card at even intervals, alone and beside other work: (f), (g) and (k).
import type { Line } from '../line.ts'
import { type AloneRun, type BesideRun, putAlone, putBesideMigration, putBesideSubmit } from '../single/beside.ts'
import { type Asked, fileOf, onItsOwn } from './asked.ts'

/** (f). */
export async function putsAlone(asked: Asked): Promise<Line[]> {
  return [lineOf('f: PUT, idle', asked, await onItsOwn(asked, putAlone))]
}

/** (g). */
export async function putsBesideMigration(asked: Asked): Promise<Line[]> {
  const file = fileOf(asked, 'beside.csv')
  const run = await onItsOwn(asked, installation => putBesideMigration(installation, file))
  return [lineOf('g: PUT beside a migration', asked, run)]
}

/** (k). */
export async function putsBesideSubmit(asked: Asked): Promise<Line[]> {
  const file = fileOf(asked, 'beside.ndjson')
  const run = await onItsOwn(asked, installation => putBesideSubmit(installation, file))
  return [lineOf('k: PUT beside submitted creates', asked, run)]
}

function lineOf(name: string, { engine }: Asked, run: AloneRun & Partial<BesideRun>): Line {
  const { requests, p50, p99, others, besidePerSecond, processor } = run
  const beside = besidePerSecond === undefined ? {} : { besidePerSecond: Math.round(besidePerSecond) }
  const perSecond = Math.round(run.sent.requests / run.sent.seconds)
  return { case: name, engine, rows: requests, perSecond, p50, p99, others, ...beside, processor }
}
