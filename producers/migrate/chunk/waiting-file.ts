// Keeps what will be written of chunks that wait for an older one in a file beside the results: their texts, and what is
// counted of their rows. Neither holds card data that the results don't hold. The file serves one run: the next run gets
// the answers again.
import { type FileHandle, open, rm } from 'node:fs/promises'
import type { WaitingEnds } from '../../client/window.ts'
import { cannotWrite } from '../../rows/atomic-file.ts'
import { FILE_OUTCOMES, type FileCounts, noFileCounts } from '../../rows/file-outcome.ts'
import { type CountedRow, countedOf, type EndedChunk } from '../output.ts'

/** At full speed workers fill it in some minutes; a lock of a worker that vanished runs out sooner. */
const BYTES_MAX = 512 * 1024 * 1024

export interface WaitingFile extends WaitingEnds<EndedChunk> {
  /** The sum of these counts and of the rows in the file. */
  withRows(counts: FileCounts): FileCounts
  close(): Promise<void>
}

/** Where the parts of a chunk lie. */
interface Place extends Pick<EndedChunk, 'number' | 'isSent'> {
  at: number
  /** The length of the rows, and then of the parts of each text, in bytes. */
  rows: number
  texts: number[][]
  /** Its number of rows of each outcome. */
  counts: FileCounts
}

/** `path`: a file that an earlier run left is replaced. */
export function openWaitingFile(path: string, { bytesMax = BYTES_MAX } = {}): WaitingFile {
  const places = new Map<number, Place>()
  let waiting = noFileCounts()
  let file: FileHandle | undefined
  let end = 0

  async function append(text: string | Buffer): Promise<number> {
    const bytes = Buffer.from(text)
    try {
      file ??= await open(path, 'w+', 0o600)
      for (let at = 0; at < bytes.length; )
        at += (await file.write(bytes, at, bytes.length - at, end + at)).bytesWritten
    } catch (error) {
      throw cannotWrite(path, error)
    }
    end += bytes.length
    return bytes.length
  }
  async function read(at: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length)
    for (let done = 0; done < length; ) {
      const { bytesRead } = (await file?.read(bytes, done, length - done, at + done)) ?? { bytesRead: 0 }
      if (bytesRead === 0) throw cannotWrite(path, new Error('it was cut'))
      done += bytesRead
    }
    return bytes
  }

  return {
    isFull: () => end >= bytesMax,
    withRows: counts => add(counts, waiting, 1),
    async put(position, { number, isSent, rows, texts }) {
      const place: Place = { number, isSent, at: end, rows: 0, texts: [], counts: noFileCounts() }
      place.rows = await append(JSON.stringify(rows.map(countedOf)))
      for (const parts of texts) {
        const lengths: number[] = []
        for (const part of parts) lengths.push(await append(part))
        place.texts.push(lengths)
      }
      for (const { outcome } of rows) place.counts[outcome] += 1
      waiting = add(waiting, place.counts, 1)
      places.set(position, place)
    },
    async take(position) {
      const place = places.get(position)
      if (place === undefined) throw new Error(`broken law: chunk ${position} waits in the file`)
      const { number, isSent, at } = place
      const rows = JSON.parse((await read(at, place.rows)).toString()) as CountedRow[]
      let from = at + place.rows
      const texts: Buffer[][] = []
      for (const lengths of place.texts) {
        const parts: Buffer[] = []
        for (const length of lengths) {
          parts.push(await read(from, length))
          from += length
        }
        texts.push(parts)
      }
      places.delete(position)
      waiting = add(waiting, place.counts, -1)
      if (places.size === 0) {
        end = 0
        await file?.truncate(0)
      }
      return { number, isSent, rows, texts }
    },
    async close() {
      await file?.close()
      await rm(path, { force: true })
    },
  }
}

function add(counts: FileCounts, more: FileCounts, sign: 1 | -1): FileCounts {
  const sum = { ...counts }
  for (const outcome of FILE_OUTCOMES) sum[outcome] += sign * more[outcome]
  return sum
}
