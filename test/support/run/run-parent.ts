// Chooses where the directory of a run is made: in memory if there is room, because each suite makes and removes a
// database of some 300 files.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
/** A whole run needs less than half of this. */
const BYTES_MIN = 4 * 1024 ** 3

/** Every folder in which a run may have left its directory. */
export const PARENTS: readonly string[] = [...new Set([MEMORY, tmpdir()])]

export function runParent(): string {
  return isFit(MEMORY) ? MEMORY : tmpdir()
}

/**
 * Whether there is room in the folder and in memory, and this process may write files and run programs there: copies of
 * PostgreSQL's programs may be put there.
 */
function isFit(dir: string): boolean {
  if (!existsSync(dir)) return false
  const { bavail, bsize } = statfsSync(dir)
  if (Math.min(bavail * bsize, process.availableMemory()) < BYTES_MIN) return false
  let own: string | undefined
  try {
    own = mkdtempSync(join(dir, 'tokenmill-probe-'))
    const program = join(own, 'program')
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 })
    execFileSync(program)
    return true
  } catch {
    return false
  } finally {
    if (own !== undefined) rmSync(own, { recursive: true, force: true })
  }
}
