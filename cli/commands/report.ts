// `tokenmill report`: requests, finds and downloads reports. A request goes through the queue; the others read the
// store and the report files.
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { connect, RefusedError } from '../../producers/client.ts'
import { readClientFile } from '../../producers/client-file.ts'
import { signAsk } from '../../producers/envelope.ts'
import { type ReportRequest, report } from '../../producers/report.ts'
import { systemClock } from '../../src/clock.ts'
import { ConfigError } from '../../src/config.ts'
import { Fault, isRefusal, REASONS, type Reason } from '../../src/errors.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { receiptId } from '../../src/job/envelope/ids.ts'
import { type FieldReason, fieldsOf, textOf } from '../../src/job/problem.ts'
import type { MimeType, ReportType } from '../../src/job/report.ts'
import { readReport } from '../../src/report/files/download.ts'
import { recordOf } from '../../src/report/record.ts'
import { isParseError } from '../../src/rsql/parse-error.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { Store } from '../../src/store/pool.ts'
import { search } from '../../src/store/report/report-search.ts'
import * as reports from '../../src/store/report/reports.ts'
import { areReportsMade } from '../../workers/report/makers.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, openSession, type Session, withSession } from '../open/open.ts'
import { openProducer, type Producing } from '../open/producer.ts'
import { NO_REPORTS, openReportFiles } from '../open/report-files.ts'
import { moment, print, say, type Terminal, table } from '../terminal.ts'

/** Long enough for a report of many millions of lines behind other reports. */
const WAIT_MS_MAX = 3_600_000
const UNAVAILABLE = 'reports_unavailable' satisfies Reason

interface RequestOptions extends JsonOption {
  client?: string
  type: ReportType
  parameter?: Parameter[]
  mime: MimeType
  entity?: string
  refresh?: boolean
  wait?: boolean
}

interface Parameter {
  name: string
  value: string
}

export async function request(terminal: Terminal, options: RequestOptions): Promise<void> {
  const session = openSession(terminal)
  try {
    await assertReportsAreMade(session)
    const producing = await openProducer(session, options.client, options.wait ? ['bulk'] : [])
    const { type, parameter = [], mime, entity = producing.credentials.entityId, refresh } = options
    const asked = {
      report_type: type,
      entity_id: entity,
      parameters: Object.fromEntries(parameter.map(({ name, value }) => [name, value])),
      mime_type: mime,
      ...(refresh ? { refresh } : {}),
    }
    await (options.wait
      ? requestAndWait(session, producing, asked, options)
      : send(terminal, producing, asked, options))
  } finally {
    await session.lifetime.close()
  }
}

/** A host without a place for report files can still request reports, if another host makes them. */
async function assertReportsAreMade(session: Session): Promise<void> {
  if (session.config.reportsUrl !== undefined) return
  const { store } = await openCommandStore(session)
  if (!(await areReportsMade({ store }))) throw new ConfigError(NO_REPORTS)
}

/** The answer goes to the client's own results queue, which another program reads. */
async function send(
  terminal: Terminal,
  { queues, credentials }: Producing,
  asked: ReportRequest,
  options: JsonOption,
): Promise<void> {
  const jti = randomUUID()
  const ask = report(asked)
  const signed = isRefusal(ask) ? ask : await signAsk(credentials, ask, { jti }, systemClock())
  if (isRefusal(signed)) throw new Stop(fieldsText(fieldsOf(signed)), EXIT.usage)
  await queues.add('report', { id: signed.id, data: signed.data })
  const reportUid = receiptId(credentials.signingKey.clientId, jti)
  print(terminal, options, { reportUid, status: 'INITIATED' }, reportUid)
}

async function requestAndWait(
  { terminal, config, log }: Session,
  { queues, credentials }: Producing,
  asked: ReportRequest,
  options: JsonOption,
): Promise<void> {
  const replyTo = `report${randomUUID().replaceAll('-', '').slice(0, 16)}`
  const client = await connect({ queues, credentials, replyTo, log, resendMs: config.resendMs })
  try {
    const { record, error } = await client.call('report', asked, { timeoutMs: WAIT_MS_MAX })
    if (error) {
      if (options.json) print(terminal, options, { error }, '')
      if (Object.values(error.details ?? {}).some(({ code }) => code === UNAVAILABLE))
        throw new Stop(REASONS[UNAVAILABLE].text, EXIT.config)
      const wrong = Object.entries(error.details ?? {}).map(([field, { message }]) => `${optionOf(field)}: ${message}`)
      throw new Stop(wrong.join('; ') || error.message, error.code === 400 ? EXIT.usage : EXIT.failure)
    }
    print(terminal, options, record, `${record?.['reportUid']}\n${record?.['fileName']}`)
    if (!options.json)
      say(terminal, `Download it: tokenmill report download ${record?.['reportUid']} --out ${record?.['fileName']}`)
  } catch (thrown) {
    throw thrown instanceof RefusedError ? new Stop(fieldsText(fieldsOf(thrown.refusal)), EXIT.usage) : thrown
  } finally {
    await client.close()
    await queues.obliterate(resultsQueue(client.clientId, replyTo)).catch(() => {})
  }
}

/** The name of a field on the command line. */
const optionOf = (field: string): string => field.replace(/^body\.parameters\./, '--parameter ')

const fieldsText = (fields: FieldReason[]): string =>
  fields.map(one => `${optionOf(one.field)}: ${textOf(one)}`).join('; ')

interface ListOptions extends JsonOption {
  limit: number
  search?: string
  client?: string
}

/**
 * The entities that the client of these credentials may see: a search covers its own entity, or those that the
 * expression names.
 */
async function entitiesOf(session: Session, store: Store, file: string | undefined): Promise<string[]> {
  const { client_id: clientId } = await readClientFile(file ?? join(session.config.dataDir, 'dev-client.json'))
  const client = await clients.find(store, clientId)
  if (!client)
    throw new Stop(
      'This installation does not know the client of these credentials; give the file of another client with --client.',
    )
  return client.entities
}

export function list(terminal: Terminal, options: ListOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const { search: expression, limit, client } = options
    const page = await search(store, {
      entities: await entitiesOf(session, store, client),
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
    const files = openReportFiles(session)
    const { store } = await openCommandStore(session)
    const found = await reports.find(store, uid)
    if (!found) throw new Stop('There is no such report; `tokenmill report list` lists them.')
    const { status, storageKey, bytes, sha256 } = found
    if (status !== 'SUCCESSFUL' || storageKey === null || bytes === null || sha256 === null)
      throw new Stop(`This report is ${status}${found.failureReason ? `: ${found.failureReason}` : ''}.`)
    const file = await readReport(files, { storageKey, bytes, sha256 })
    if (options.out === undefined) return pipeline(file, terminal.stdout, { end: false })
    await writeWhole(file, options.out)
    say(terminal, `${options.out}: ${bytes} bytes, SHA-256 ${sha256}`)
    if (options.json) print(terminal, options, recordOf(found), '')
  })
}

/** The file gets its name only when it is complete. */
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
