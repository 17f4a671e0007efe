// A file that a migration writes: appended in input order as answers come, and cut back to the checkpoint when a run is
// continued. It keeps the digest of what it wrote. The caller gives text and order; what the text means isn't known here.
import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { cannotWrite, syncDirectory } from '../rows/atomic-file.ts'
import { codeOf, FileError } from '../rows/file-error.ts'

/** The number of bytes written, and their SHA-256 in hex. */
export interface FileDigest {
  bytes: number
  sha256: string
}

export interface OutputFile {
  append(text: string | Buffer): Promise<void>
  /** The digest and the length of what was appended so far, whether it is on disk or not. */
  mark(): FileDigest
  /** Makes the text durable: only then may a checkpoint name it. */
  sync(): Promise<FileDigest>
  close(): Promise<void>
}

const REREAD_BYTES = 1024 * 1024

export function digestOf(text: string): FileDigest {
  return { bytes: Buffer.byteLength(text), sha256: createHash('sha256').update(text).digest('hex') }
}

/** Throws a FileError for a name that a file has already. `option`: the option that names the file. */
export async function checkFree(path: string, option: string): Promise<void> {
  const taken = await stat(path).then(
    () => true,
    error => codeOf(error) !== 'ENOENT',
  )
  if (!taken) return
  const next = `Give another name with ${option} FILE, or move it away.`
  throw new FileError('usage', `${path} exists and does not belong to this batch.`, next)
}

/**
 * Opens a file that the checkpoint names: verifies the bytes that the checkpoint counts and cuts off those after it. If
 * it counts no bytes, the file is created and begins with `header`.
 */
export function openOutputFile(path: string, header: string, at: FileDigest): Promise<OutputFile> {
  return at.bytes === 0 ? begin(path, header) : resume(path, at)
}

async function begin(path: string, header: string): Promise<OutputFile> {
  const file = await open(path, 'wx+', 0o600).catch(async error => {
    const begun = codeOf(error) === 'EEXIST' ? await openBegun(path, header) : undefined
    if (begun) return begun
    throw cannotWrite(path, error)
  })
  return closedOnError(file, async () => {
    await syncDirectory(dirname(path))
    const output = appendTo(path, file, createHash('sha256'), 0)
    await output.append(header)
    return output
  })
}

/** Opens the file of a run that ended while it wrote the header; undefined if the file holds anything else. */
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

async function resume(path: string, at: FileDigest): Promise<OutputFile> {
  const file = await open(path, 'r+').catch(error => {
    const next = 'Put it back, or run with --again as a new batch.'
    throw new FileError('output', `${path}, which the checkpoint names, cannot be opened.`, next, error)
  })
  return closedOnError(file, async () => {
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
    return appendTo(path, file, hash, at.bytes)
  })
}

async function closedOnError(file: FileHandle, opening: () => Promise<OutputFile>): Promise<OutputFile> {
  try {
    return await opening()
  } catch (error) {
    await file.close()
    throw error
  }
}

function appendTo(path: string, file: FileHandle, hash: Hash, start: number): OutputFile {
  let bytes = start
  const mark = () => ({ bytes, sha256: hash.copy().digest('hex') })
  return {
    mark,
    async append(text) {
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
    },
    async sync() {
      await file.datasync().catch(error => {
        throw cannotWrite(path, error)
      })
      return mark()
    },
    close: () => file.close(),
  }
}
