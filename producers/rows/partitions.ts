// Keeps keyed digests of texts, each with a few bytes beside it: in memory, and beyond a limit in files, which are removed
// at the end or when the process exits. The key is made here and never written, so the files reveal nothing about the
// texts (PCI DSS 3.5.1.1: no unkeyed hash of a card number).
import { hash, randomBytes } from 'node:crypto'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** With 16 bytes, the chance that two of a billion texts have the same digest is 1 to 10^21. */
export const DIGEST_BYTES = 16
/** One partition per first byte of a digest: with a hundred million digests each file has 6 MB. */
export const PARTITIONS = 256
/**
 * An inspection keeps up to seven sets of digests. Each spill appends to 256 files, which takes some 10 ms; of a
 * million rows there are about two.
 */
const MEMORY_BYTES_MAX = 4 * 1024 * 1024
/** The first size of a partition's buffer, in records; it then grows by a quarter at a time. */
const ROOM_RECORDS = 64

export interface SpillOptions {
  /** When the records in memory exceed this many bytes, they are written to disk. */
  memoryBytesMax?: number
  /** The folder in which the files get a folder of their own. */
  under?: string
}

/** Digests a text. Texts are compared across partitions only by the same function. */
export type DigestText = (text: string) => Buffer

const BLOCK_BYTES = 64
const HASH_BYTES = 32
const INNER_PAD = 0x36
const OUTER_PAD = 0x5c

/**
 * A function that digests by a key of its own: HMAC-SHA-256, cut to its first bytes. It is written out (RFC 2104), because
 * an object of node:crypto for each text takes several times as long.
 */
export function keyedDigest(key: Buffer = randomBytes(HASH_BYTES)): DigestText {
  const block = Buffer.alloc(BLOCK_BYTES)
  key.copy(block)
  let inner = Buffer.concat([block.map(byte => byte ^ INNER_PAD), Buffer.alloc(BLOCK_BYTES)])
  const outer = Buffer.concat([block.map(byte => byte ^ OUTER_PAD), Buffer.alloc(HASH_BYTES)])
  return text => {
    // A UTF-16 unit takes at most three bytes.
    const most = BLOCK_BYTES + text.length * 3
    if (most > inner.length) inner = Buffer.concat([inner], most)
    const end = BLOCK_BYTES + inner.write(text, BLOCK_BYTES)
    // Hashes are made as texts, which are on the heap: to allocate a buffer outside of it takes as long as the hash
    // itself.
    outer.write(hash('sha256', inner.subarray(0, end), 'binary'), BLOCK_BYTES, 'latin1')
    return Buffer.from(hash('sha256', outer, 'binary').slice(0, DIGEST_BYTES), 'latin1')
  }
}

export interface Partitions {
  /** `beside`: as many bytes as `besideBytes` says. */
  add(digest: Buffer, beside?: Buffer): void
  /** The records of a partition, digests with what is beside them: first those on disk. */
  recordsOf(partition: number): Generator<Buffer>
  /** Removes the files. */
  close(): void
}

/** `besideBytes`: how many further bytes are stored with each digest. */
export function openPartitions(
  besideBytes: number,
  { memoryBytesMax = MEMORY_BYTES_MAX, under = tmpdir() }: SpillOptions = {},
): Partitions {
  const recordBytes = DIGEST_BYTES + besideBytes
  const parts = Array.from({ length: PARTITIONS }, () => openPart(recordBytes))
  let dir: string | undefined
  let held = 0

  const fileOf = (directory: string, part: number) => join(directory, `${part}`)
  function spill(): void {
    if (dir === undefined) {
      dir = mkdtempSync(join(under, 'tokenmill-'))
      process.once('exit', close)
    }
    for (const [index, part] of parts.entries()) {
      const records = part.held()
      if (records.length > 0) appendFileSync(fileOf(dir, index), records, { mode: 0o600 })
      part.clear()
    }
    held = 0
  }
  function close(): void {
    process.off('exit', close)
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true })
    dir = undefined
  }
  return {
    add(digest, beside) {
      parts[digest[0] ?? 0]?.add(digest, beside)
      held += recordBytes
      if (held >= memoryBytesMax) spill()
    },
    *recordsOf(partition) {
      const stored = dir === undefined ? Buffer.alloc(0) : readIfThere(fileOf(dir, partition))
      for (const records of [stored, parts[partition]?.held() ?? Buffer.alloc(0)]) {
        for (let at = 0; at < records.length; at += recordBytes) yield records.subarray(at, at + recordBytes)
      }
    },
    close,
  }
}

/** The digest of a record, as a text. */
export function digestIn(record: Buffer): string {
  return record.toString('latin1', 0, DIGEST_BYTES)
}

/** Stores records next to each other in one buffer: one object per record would take thirty times the memory. */
function openPart(recordBytes: number) {
  let room = Buffer.allocUnsafeSlow(ROOM_RECORDS * recordBytes)
  let end = 0
  return {
    add(digest: Buffer, beside: Buffer | undefined): void {
      if (end === room.length) {
        const wider = Buffer.allocUnsafeSlow(end + Math.ceil(end / 4 / recordBytes) * recordBytes)
        room.copy(wider)
        room = wider
      }
      digest.copy(room, end, 0, DIGEST_BYTES)
      beside?.copy(room, end + DIGEST_BYTES)
      end += recordBytes
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
