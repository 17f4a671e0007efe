// The results file of a migration: rows are appended in input order as answers arrive, and cut back to the checkpoint
// when a run is continued. It keeps the digest of what it wrote. The caller gives the order; nothing is sorted here.
import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { cannotWrite, syncDirectory } from '../rows/atomic-file.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import { type FileRow, headerOf, type ResultColumns, textOf } from '../rows/outcome/result-row.ts'

/** The number of bytes written, and their SHA-256 in hex. */
export interface ResultsDigest {
  bytes: number
  sha256: string
}

export interface ResultsFile {
  write(rows: readonly FileRow[]): Promise<void>
  /** Makes the written rows durable: only then may a checkpoint name them. */
  sync(): Promise<ResultsDigest>
  close(): Promise<void>
}

const REREAD_BYTES = 1024 * 1024

/** Creates a results file with its header. Throws a FileError if another file has that name. */
export async function createResults(path: string, columns: ResultColumns): Promise<ResultsFile> {
  const file = await open(path, 'wx+', 0o600).catch(async error => {
    if (codeOf(error) !== 'EEXIST') throw cannotWrite(path, error)
    const begun = await openBegun(path, headerOf(columns))
    if (begun) return begun
    const next = 'Give another name with --results FILE, or move it away.'
    throw new FileError('usage', `${path} exists and does not belong to this batch.`, next, error)
  })
  try {
    await syncDirectory(dirname(path))
    const results = appendTo(path, file, columns, createHash('sha256'), 0)
    await results.append(headerOf(columns))
    return results
  } catch (error) {
    await file.close()
    throw error
  }
}

/**
 * Opens the file of a run that ended before its first checkpoint: nothing was sent, and at most the header was written.
 */
async function openBegun(path: string, header: string): Promise<FileHandle | undefined> {
  const file = await open(path, 'r+').catch(() => undefined)
  if (!file) return undefined
  const { size } = await file.stat()
  if (size <= Buffer.byteLength(header) && header.startsWith(await file.readFile('utf8'))) {
    await file.truncate(0)
    return file
  }
  await file.close()
  return undefined
}

/** Opens a results file at a checkpoint: verifies the bytes before the checkpoint and cuts off those after it. */
export async function resumeResults(path: string, columns: ResultColumns, at: ResultsDigest): Promise<ResultsFile> {
  const file = await open(path, 'r+').catch(error => {
    const next = 'Put it back, or run with --again as a new batch.'
    throw new FileError('output', `${path}, which the checkpoint names, cannot be opened.`, next, error)
  })
  try {
    const hash = createHash('sha256')
    for (let position = 0; position < at.bytes; ) {
      const size = Math.min(REREAD_BYTES, at.bytes - position)
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(size), 0, size, position)
      if (bytesRead === 0) break
      hash.update(buffer.subarray(0, bytesRead))
      position += bytesRead
    }
    if (hash.copy().digest('hex') !== at.sha256) {
      const next = 'Put the unchanged file back, or run with --again as a new batch.'
      throw new FileError('output', `${path} was changed since the run that is to be continued.`, next)
    }
    await file.truncate(at.bytes)
    return appendTo(path, file, columns, hash, at.bytes)
  } catch (error) {
    await file.close()
    throw error
  }
}

function appendTo(path: string, file: FileHandle, columns: ResultColumns, hash: Hash, start: number) {
  let bytes = start
  const append = async (text: string) => {
    const chunk = Buffer.from(text)
    try {
      for (let at = 0; at < chunk.length; ) {
        at += (await file.write(chunk, at, chunk.length - at, bytes + at)).bytesWritten
      }
    } catch (error) {
      throw cannotWrite(path, error)
    }
    hash.update(chunk)
    bytes += chunk.length
  }
  return {
    append,
    write: (rows: readonly FileRow[]) => append(textOf(rows, columns)),
    sync: async (): Promise<ResultsDigest> => {
      await file.datasync().catch(error => {
        throw cannotWrite(path, error)
      })
      return { bytes, sha256: hash.copy().digest('hex') }
    },
    close: () => file.close(),
  }
}
