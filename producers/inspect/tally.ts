// Counts exactly how many different texts were added. It keeps keyed digests in memory, and beyond a limit in files,
// which are removed at the end or when the process exits. The key is made here and never written, so the files reveal
// nothing about the texts (PCI DSS 3.5.1.1: no unkeyed hash of a card number).
import { createHmac, randomBytes } from 'node:crypto'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** With 16 bytes, the chance that two of a billion texts have the same digest is 1 to 10^21. */
const DIGEST_BYTES = 16
/** One partition per first byte of a digest: with a hundred million texts each file has 6 MB. */
const PARTITIONS = 256
const MEMORY_BYTES_MAX = 32 * 1024 * 1024
/** The first size of a partition's buffer; it then grows by a quarter at a time. */
const ROOM_BYTES = 64 * DIGEST_BYTES

export interface TallyEnd {
  /** How many texts were added. */
  added: number
  distinct: number
  /** How many different texts were added more than once. */
  repeated: number
  /** How often the most frequent text was added. */
  most: number
}

export interface Tally {
  add(text: string): void
  end(): TallyEnd
  /** Removes the files; `end` doesn't. */
  close(): void
}

export interface TallyOptions {
  /** When the digests in memory exceed this many bytes, they are written to disk. */
  memoryBytesMax?: number
  /** The folder in which the files get a folder of their own. */
  under?: string
}

export function openTally({ memoryBytesMax = MEMORY_BYTES_MAX, under = tmpdir() }: TallyOptions = {}): Tally {
  const key = randomBytes(32)
  const parts = Array.from({ length: PARTITIONS }, openPart)
  let dir: string | undefined
  let held = 0
  let added = 0

  const fileOf = (directory: string, part: number) => join(directory, `${part}`)
  function spill(): void {
    if (dir === undefined) {
      dir = mkdtempSync(join(under, 'tokenmill-inspect-'))
      process.once('exit', close)
    }
    for (const [index, part] of parts.entries()) {
      const digests = part.held()
      if (digests.length > 0) appendFileSync(fileOf(dir, index), digests, { mode: 0o600 })
      part.clear()
    }
    held = 0
  }
  function close(): void {
    process.off('exit', close)
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true })
    dir = undefined
  }
  /** The digests of a partition, first those on disk. */
  function* digestsOf(part: number): Generator<Buffer> {
    const stored = dir === undefined ? Buffer.alloc(0) : readIfThere(fileOf(dir, part))
    for (const digests of [stored, parts[part]?.held() ?? Buffer.alloc(0)]) {
      for (let at = 0; at < digests.length; at += DIGEST_BYTES) yield digests.subarray(at, at + DIGEST_BYTES)
    }
  }

  return {
    add(text) {
      const digest = createHmac('sha256', key).update(text).digest()
      parts[digest[0] as number]?.add(digest)
      added += 1
      held += DIGEST_BYTES
      if (held >= memoryBytesMax) spill()
    },
    end() {
      const end: TallyEnd = { added, distinct: 0, repeated: 0, most: 0 }
      for (let part = 0; part < PARTITIONS; part++) {
        const counts = new Map<string, number>()
        for (const digest of digestsOf(part)) {
          const name = digest.toString('latin1')
          counts.set(name, (counts.get(name) ?? 0) + 1)
        }
        end.distinct += counts.size
        for (const count of counts.values()) {
          if (count > 1) end.repeated += 1
          if (count > end.most) end.most = count
        }
      }
      return end
    },
    close,
  }
}

/** Stores digests next to each other in one buffer: one object per digest would take thirty times the memory. */
function openPart() {
  let room = Buffer.allocUnsafeSlow(ROOM_BYTES)
  let end = 0
  return {
    add(digest: Buffer): void {
      if (end === room.length) {
        const wider = Buffer.allocUnsafeSlow(end + Math.ceil(end / 4 / DIGEST_BYTES) * DIGEST_BYTES)
        room.copy(wider)
        room = wider
      }
      end += digest.copy(room, end, 0, DIGEST_BYTES)
    },
    held: () => room.subarray(0, end),
    clear(): void {
      end = 0
    },
  }
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}
