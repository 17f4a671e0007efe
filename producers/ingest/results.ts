// The results file of an ingest: one line of CSV for each row that was not stored. The file gets its name, and replaces
// that of an earlier run, only when the run is complete. One run at a time writes it.
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { cellOf } from '../../src/csv-text.ts'
import type { Outcome } from '../../src/job/outcome.ts'
import { cannotWrite } from '../rows/atomic-file.ts'
import { lockRun } from '../rows/outcome/run-lock.ts'

export interface RefusedLine {
  line: number
  uid: string
  outcome: Outcome
  /** The HTTP status of the refusal. */
  code: number
  reason: string
  field: string | undefined
}

export interface Results {
  write(lines: readonly RefusedLine[]): Promise<void>
  /** Renames the file to its final name. */
  complete(): Promise<void>
  /** Removes the new file; the file of an earlier run stays as it was. */
  discard(): Promise<void>
}

/**
 * Opens the file; `complete` or `discard` must follow. Throws a FileError if it can't be written, or if another process
 * writes it. `idColumn`: the name of the column with the row's id.
 */
export async function openResults(path: string, idColumn = 'transaction_uid'): Promise<Results> {
  const release = await lockRun(path)
  const beside = `${path}.new`
  const stream = createWriteStream(beside, { mode: 0o600, flush: true })
  let failure: unknown
  stream.on('error', error => {
    failure = error
  })
  const put = async (text: string) => {
    if (failure !== undefined) throw cannotWrite(path, failure)
    // If the stream fails during the wait, the wait rejects.
    if (!stream.write(text)) {
      await once(stream, 'drain').catch(error => {
        throw cannotWrite(path, error)
      })
    }
  }
  const discard = async () => {
    stream.destroy()
    await rm(beside, { force: true })
    await release()
  }
  await put(`line,${idColumn},outcome,code,reason,field\n`).catch(async error => {
    await discard()
    throw error
  })
  return {
    async write(lines) {
      if (lines.length === 0) return
      await put(
        lines
          .map(
            ({ line, uid, outcome, code, reason, field }) =>
              `${line},${cellOf(uid)},${outcome},${code},${reason},${field ?? ''}\n`,
          )
          .join(''),
      )
    },
    async complete() {
      try {
        stream.end()
        await finished(stream)
        await rename(beside, path)
        await release()
      } catch (error) {
        throw cannotWrite(path, failure ?? error)
      }
    },
    discard,
  }
}
