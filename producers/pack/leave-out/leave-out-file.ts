// `NAME.pack.leave-out.csv`: every row that doesn't count in the total of both sides, as the results name it. The sender
// gives this file to docs/sign-off/total.py. It names no reference and holds no card data.
import { createHash } from 'node:crypto'
import { closeSync, createReadStream, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { cellOf } from '../../../src/csv-text.ts'
import { cannotWrite, syncDirectory } from '../../rows/atomic-file.ts'
import { readCsv } from '../../rows/csv.ts'
import { FileError } from '../../rows/file-error.ts'
import type { ResultLine } from '../results-file.ts'
import type { NamedRow } from './left-out-rows.ts'

const HEADER = 'batch_id,line,item,reason'
const BLOCK = 64 * 1024

export function leaveOutPath(pack: string): string {
  return `${pack.replace(/\.json$/, '')}.leave-out.csv`
}

/** Where the text of the file goes. */
export type Sink = (text: string) => void

export interface LeaveOutText {
  /** `reason`: why the total leaves out the row; undefined: it took no effect. */
  add(batchId: string, row: ResultLine, reason: string | undefined): void
  end(): { sha256: string; bytes: number }
}

/** Makes the text, in blocks. */
export function openLeaveOutText(sink: Sink): LeaveOutText {
  const hash = createHash('sha256')
  let bytes = 0
  let open = `${HEADER}\n`
  const flush = () => {
    hash.update(open)
    bytes += Buffer.byteLength(open)
    sink(open)
    open = ''
  }
  return {
    add(batchId, { line, item, outcome, reason: ended }, reason = ended ?? outcome) {
      open += `${batchId},${line},${item ?? ''},${cellOf(reason)}\n`
      if (open.length >= BLOCK) flush()
    },
    end() {
      flush()
      return { sha256: hash.digest('hex'), bytes }
    },
  }
}

/** Replaces the file at `path` with what `write` gives to its sink, once `write` has ended without an error. */
export async function replaceFile<Value>(path: string, write: (sink: Sink) => Promise<Value>): Promise<Value> {
  const beside = `${path}.${process.pid}.new`
  const attempt = <Done>(step: () => Done): Done => {
    try {
      return step()
    } catch (error) {
      throw cannotWrite(path, error)
    }
  }
  const file = attempt(() => openSync(beside, 'w', 0o600))
  try {
    // Synchronously: the reader of results doesn't wait for a promise, so text that isn't written yet would pile up.
    const value = await write(text => attempt(() => writeSync(file, text)))
    attempt(() => fsyncSync(file))
    attempt(() => renameSync(beside, path))
    await syncDirectory(dirname(path))
    return value
  } finally {
    closeSync(file)
    rmSync(beside, { force: true })
  }
}

/** Throws a FileError if the file can't be read or has another form. */
export async function readLeaveOut(path: string): Promise<NamedRow[]> {
  const found: NamedRow[] = []
  let header = true
  for await (const rows of readCsv(createReadStream(path) as AsyncIterable<Buffer>)) {
    for (const { fields, rejected, line: at } of rows) {
      const [batchId = '', line = '', item = '', reason = ''] = fields
      const isSound = header ? fields.join() === HEADER : /^\d{1,15}$/.test(line)
      if (rejected !== undefined || !isSound) throw otherForm(path, at)
      if (!header) found.push({ batch_id: batchId, line: Number(line), item: item || null, reason })
      header = false
    }
  }
  return found
}

function otherForm(path: string, at: number): FileError {
  const next = 'Put back the file as manifest pack wrote it.'
  return new FileError('input', `${basename(path)} has another form than manifest pack gives it (line ${at}).`, next)
}
