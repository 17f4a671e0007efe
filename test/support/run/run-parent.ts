// Where the directory of a run is made: in memory where there is room. A database per suite is some 300 files made and
// removed again, for which a disk's file system needs ten times the processor time.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
/** A whole run takes less than half of it. */
const BYTES_MIN = 4 * 1024 ** 3

/** Wherever a run may have left its directory. */
export const PARENTS: readonly string[] = [...new Set([MEMORY, tmpdir()])]

export function runParent(): string {
  return isFit(MEMORY) ? MEMORY : tmpdir()
}

/** Room in it and in the machine's memory, and leave to write and to run programs: copies of PostgreSQL's may lie there. */
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
