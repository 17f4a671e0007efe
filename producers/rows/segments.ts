// Digests the raw bytes of an input while it is read. On the second reading it holds bytes back until their digest is
// that of the first reading. One running SHA-256 serves both purposes: its state after each 16 MiB is the digest of
// that segment and of all before it, and its last state is the digest that `sha256sum` prints.
import { createHash } from 'node:crypto'
import { FileError } from './file-error.ts'

export const SEGMENT_BYTES = 16 * 1024 * 1024

export interface InputDigest {
  /** Hex SHA-256 of the raw file. */
  sha256: string
  bytes: number
}

export interface SegmentDigests extends InputDigest {
  /** The hex digest of everything up to the end of each segment; the last one equals `sha256`. */
  segments: readonly string[]
}

export interface Digesting {
  bytes: AsyncIterable<Buffer>
  /** The digests; complete once `bytes` has ended. */
  digests(): SegmentDigests
}

/** Cuts the bytes at the ends of segments, so that no piece belongs to two segments. */
async function* cut(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let room = SEGMENT_BYTES
  for await (let chunk of bytes) {
    while (chunk.length >= room) {
      yield chunk.subarray(0, room)
      chunk = chunk.subarray(room)
      room = SEGMENT_BYTES
    }
    if (chunk.length > 0) {
      yield chunk
      room -= chunk.length
    }
  }
}

/** Passes the bytes on and digests them. */
export function digestWhileReading(bytes: AsyncIterable<Buffer>): Digesting {
  const hash = createHash('sha256')
  const segments: string[] = []
  let count = 0
  async function* passing() {
    for await (const piece of cut(bytes)) {
      hash.update(piece)
      count += piece.length
      if (count % SEGMENT_BYTES === 0) segments.push(hash.copy().digest('hex'))
      yield piece
    }
    if (count % SEGMENT_BYTES !== 0 || count === 0) segments.push(hash.copy().digest('hex'))
  }
  return {
    bytes: passing(),
    digests: () => ({ sha256: hash.copy().digest('hex'), bytes: count, segments }),
  }
}

/** What to do about a file that changed between its two readings, if a run that begins anew does no harm. */
export const CHANGED_NEXT = 'See that nothing writes to it any more, then run the same command again.'

/**
 * Passes bytes on only once their whole segment has the digest of the first reading; holds one segment in memory.
 * Throws a FileError before any byte of a changed segment is passed on. `next` is asked then, and says what to do.
 */
export async function* releaseVerified(
  name: string,
  bytes: AsyncIterable<Buffer>,
  digests: SegmentDigests,
  next: () => string = () => CHANGED_NEXT,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let held: Buffer[] = []
  let count = 0
  let segment = 0
  const verifySegment = () => {
    if (hash.copy().digest('hex') !== digests.segments[segment++]) throw changed(name, next())
    const verified = held
    held = []
    return verified
  }
  for await (const piece of cut(bytes)) {
    hash.update(piece)
    held.push(piece)
    count += piece.length
    if (count > digests.bytes) throw changed(name, next())
    if (count % SEGMENT_BYTES === 0) yield* verifySegment()
  }
  if (count !== digests.bytes) throw changed(name, next())
  if (held.length > 0) yield* verifySegment()
}

function changed(name: string, next: string): FileError {
  return new FileError('input', `${name} changed between its two readings.`, next)
}
