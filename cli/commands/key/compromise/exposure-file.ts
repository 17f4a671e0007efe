// The file of what a key exposed: one line for each row, `column,key`. It is written whole or not at all. It holds no secret of
// the vault, but says which cards were exposed.
import { randomBytes } from 'node:crypto'
import { link, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncDirectory } from '../../../../producers/rows/atomic-file.ts'
import type { Exposure } from '../../../../src/acts/key/compromise.ts'
import type { Db } from '../../../../src/store/pool.ts'
import { exposedKeys, exposedPlaces } from '../../../../src/store/reseal/exposed-rows.ts'
import { EXIT, Stop } from '../../../exit.ts'

/** Counts the rows, and lists them in the file if there is one. */
export async function listExposure(
  db: Db,
  { purpose, version }: { purpose: string; version: number },
  path: string | undefined,
): Promise<Exposure> {
  if (path === undefined) return count(db, { purpose, version }, async () => {})
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = await open(draft, 'wx', 0o600)
    let exposure: Exposure
    try {
      // `writeFile` goes on where it was until all is written; `write` may write a part, as where the disk is full.
      await file.writeFile('column,key\n')
      exposure = await count(db, { purpose, version }, async (column, keys) => {
        await file.writeFile(keys.map(key => `${column},${key}\n`).join(''))
      })
      await file.sync()
    } finally {
      await file.close()
    }
    await link(draft, path)
    // The rows are recorded as listed next, for good: by then the file's name must survive a power failure.
    await syncDirectory(dirname(path))
    return exposure
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new Stop(`${path} exists already; name another file with --out, and run this again.`)
    if (syscall !== undefined)
      throw new Stop(
        `${path} can't be written (${code}); name another file with --out, and run this again.`,
        EXIT.failure,
      )
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

async function count(
  db: Db,
  { purpose, version }: { purpose: string; version: number },
  take: (column: string, keys: readonly string[]) => Promise<void>,
): Promise<Exposure> {
  const exposure: Record<string, number> = {}
  for (const place of exposedPlaces(purpose)) {
    let rows = 0
    for await (const keys of exposedKeys(db, place, version)) {
      rows += keys.length
      await take(place.column, keys)
    }
    if (rows > 0) exposure[place.column] = rows
  }
  return exposure
}
