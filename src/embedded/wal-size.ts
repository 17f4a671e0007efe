// How much WAL the embedded server may keep between two checkpoints, for a volume of a given size. The server's other settings
// are in cluster.ts.
import { statfsSync } from 'node:fs'

const MB = 2 ** 20
const SIZE_MAX_MB = 16 * 1024
const SIZE_MIN_MB = 1024
/** The WAL may take one in four bytes of the volume: a store whose volume is full can't write. */
const SHARE = 4

/** `max_wal_size` for the volume of this directory. */
export function walSizeOf(directory: string): string {
  const { bsize, blocks } = statfsSync(directory)
  return walSizeFor(bsize * blocks)
}

export function walSizeFor(volumeBytes: number): string {
  const size = Math.floor(volumeBytes / SHARE / MB)
  return `${Math.min(SIZE_MAX_MB, Math.max(SIZE_MIN_MB, size))}MB`
}
