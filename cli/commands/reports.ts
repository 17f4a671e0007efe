// `tokenmill report list` and `report download`: finds reports in the store and reads their files. A user of these
// commands may see every entity's reports; `--client` narrows the list to that client's.
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { readClientFile } from '../../producers/client/client-file.ts'
import { withAccess } from '../../src/acts/access.ts'
import { Fault } from '../../src/errors.ts'
import { readReport } from '../../src/report/files/download.ts'
import { recordOf } from '../../src/report/record.ts'
import { isParseError } from '../../src/rsql/parse-error.ts'
import type { Db } from '../../src/store/pool.ts'
import { search } from '../../src/store/report/report-search.ts'
import * as reports from '../../src/store/report/reports.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, withSession } from '../open/open.ts'
import { openReportFiles } from '../open/report-files.ts'
import { actor, dataOutput, moment, print, say, type Terminal, table } from '../terminal.ts'
import { findClient } from './client/find-client.ts'

interface ListOptions extends JsonOption {
  limit: number
  search?: string
  client?: string
}

/** The entities whose reports are searched: those of the client, or all if no client is given. */
async function entitiesOf(db: Db, client: string | undefined): Promise<readonly string[] | 'all'> {
  if (client === undefined) return 'all'
  const file = client.endsWith('.json') ? await readClientFile(client) : undefined
  return (await findClient(db, file?.client_id ?? client)).entities
}

export function list(terminal: Terminal, options: ListOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const { search: expression, limit, client } = options
    const page = await search(store, {
      entities: await entitiesOf(store, client),
      search: expression,
      pageNumber: 1,
      pageSize: limit,
      orderBy: 'DESC',
      orderCriteria: 'createdOn',
    })
    if (isParseError(page)) throw new Stop(page.message, EXIT.usage)
    const found = page.reports
    const rows = found.map(each => [
      each.reportUid,
      each.reportType,
      each.mimeType,
      each.status,
      each.reportEntityUid,
      moment(each.createdOn),
    ])
    const text = table(['REPORT', 'TYPE', 'FORMAT', 'STATUS', 'ENTITY', 'CREATED'], rows)
    if (page.totals > found.length) say(terminal, `${found.length} of ${page.totals}; --limit shows more.`)
    print(terminal, options, { totals: page.totals, reports: found.map(recordOf) }, text)
  })
}

export function download(terminal: Terminal, uid: string, options: JsonOption & { out?: string }): Promise<void> {
  return withSession(terminal, async session => {
    const target = options.out ?? dataOutput(terminal)
    const files = openReportFiles(session)
    const { store } = await openCommandStore(session)
    const found = await reports.find(store, uid)
    if (!found) throw new Stop('There is no such report; `tokenmill report list` lists them.')
    const { status, storageKey, bytes, sha256 } = found
    if (status !== 'SUCCESSFUL' || storageKey === null || bytes === null || sha256 === null)
      throw new Stop(`This report is ${status}${found.failureReason ? `: ${found.failureReason}` : ''}.`)
    const access = { actor: actor(), action: 'report.download', subject: uid, detail: { sha256 } }
    await withAccess(store, access, { waits: session.config.auditUrl !== undefined }, async () => {
      const file = await readReport(files, { storageKey, bytes, sha256 })
      if (typeof target === 'string') await writeWhole(file, target)
      else await pipeline(file, target, { end: false })
    })
    if (options.out === undefined) return
    say(terminal, `${options.out}: ${bytes} bytes, SHA-256 ${sha256}`)
    if (options.json) print(terminal, options, recordOf(found), '')
  })
}

/** Writes the file under a temporary name; it gets its name only when it is complete. */
async function writeWhole(file: Readable, path: string): Promise<void> {
  const part = `${path}.part`
  try {
    await pipeline(file, createWriteStream(part, { mode: 0o600, flush: true }))
    await rename(part, path)
  } catch (error) {
    await rm(part, { force: true })
    const code = (error as NodeJS.ErrnoException).code
    throw error instanceof Fault ? error : new Stop(`${path} can't be written (${code}).`)
  }
}
