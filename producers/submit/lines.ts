// The lines of the file that `submit` sends. The file is read twice: first for its digest, from which jobs are named,
// and then for its lines, each of which is released only if its bytes are those of the first reading. What a line says
// isn't read here.
import { createReadStream } from 'node:fs'
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import { readLines } from '../rows/lines.ts'
import { CHANGED_NEXT, digestWhileReading, releaseVerified, type SegmentDigests } from '../rows/segments.ts'

/** Reads the whole file. Throws a FileError if it can't be read. */
export async function digestsOf(file: string): Promise<SegmentDigests> {
  const { bytes, digests } = digestWhileReading(readBytes(file))
  for await (const _ of bytes);
  return digests()
}

async function* readBytes(file: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(file) as AsyncIterable<Buffer>
  } catch (error) {
    const code = codeOf(error) ?? 'unreadable'
    throw new FileError('usage', `${file} can't be read (${code}).`, 'Check its name and its permissions.', error)
  }
}

const LF = 10

/**
 * The lines with their numbers, without empty ones. Throws a FileError before the first line of a segment whose bytes
 * aren't those of the first reading.
 */
export async function* linesOf(
  file: string,
  digests: SegmentDigests,
): AsyncGenerator<{ line: number; text: string | Refusal }> {
  let line = 0
  // The lines before were sent under names that only the file as it was gives them again.
  const next = () =>
    line === 0
      ? CHANGED_NEXT
      : `The lines up to ${line} were sent. Put back the file as it was and run the same command again: a changed file is another one, whose lines count as new.`
  const bytes = releaseVerified(file, readBytes(file), digests, next)
  for await (const block of readLines(bytes, () => line)) {
    if (block.tooLong) yield { line: ++line, text: refuse('row_too_long', 'body') }
    for (let start = 0; start < block.bytes.length; ) {
      const found = block.bytes.indexOf(LF, start)
      const end = found < 0 ? block.bytes.length : found
      const text = decode(block.bytes.subarray(start, end))
      start = end + 1
      line += 1
      if (isRefusal(text) || text.trim() !== '') yield { line, text }
    }
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Buffer): string | Refusal {
  try {
    return UTF8.decode(bytes)
  } catch {
    return refuse('row_utf8', 'body')
  }
}
