// What a case gets: where to run, on which engine, and how much of it.
import { join } from 'node:path'
import type { Installation } from '../../test/support/installation.ts'
import type { EngineName, Place } from '../place.ts'

export interface Asked {
  place: Place
  engine: EngineName
  rows: number
  /** Tokens in the store of (p). */
  tokens: number
}

/** Runs `work` on an installation of its own. */
export async function onItsOwn<T>(
  { place, engine }: Asked,
  work: (installation: Installation) => Promise<T>,
): Promise<T> {
  const installation = await place.open(engine)
  return work(installation).finally(installation.close)
}

/** The path of a file that the case makes. */
export function fileOf({ place, engine }: Asked, name: string): string {
  return join(place.dir, `${engine}-${name}`)
}
