// `tokenmill report request`: requests a report from the workers through the queue, and reports errors in the request
// at once.
import { randomUUID } from 'node:crypto'
import { connect, RefusedError } from '../../producers/client.ts'
import { signAsk } from '../../producers/envelope.ts'
import { type ReportRequest, report } from '../../producers/report.ts'
import { systemClock } from '../../src/clock.ts'
import { ConfigError, storeMode } from '../../src/config.ts'
import { Fault, type FieldReason, fieldsOf, isRefusal, REASONS, type Reason, textOf } from '../../src/errors.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { receiptId } from '../../src/job/envelope/ids.ts'
import { reasonsIn } from '../../src/job/problem.ts'
import { type MimeType, type ReportType, reportKind } from '../../src/job/report.ts'
import { definitionOf } from '../../src/report/definitions.ts'
import * as clients from '../../src/store/access/clients.ts'
import { areReportsMade } from '../../workers/report/makers.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, openSession, type Session } from '../open/open.ts'
import { NO_REPORTS } from '../open/report-files.ts'
import { openProducer, type Producing } from '../process/producer.ts'
import { moment, print, say, type Terminal } from '../terminal.ts'

/** How long an answer is awaited: long enough for a report of millions of lines behind other reports. */
const WAIT_MS_MAX = 3_600_000
const ROLE = reportKind.role
const FAILED_NEXT = 'The operator finds the cause: tokenmill failed list --kind report'
const LACKS_ROLE = `the client lacks the role ${ROLE}`
const ROLE_MISSING: string = 'role_missing' satisfies Reason
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
  const { type, parameter = [], mime, refresh } = options
  const parameters = Object.fromEntries(parameter.map(({ name, value }) => [name, value]))
  assertParameters(type, parameters)
  const session = openSession(terminal)
  try {
    await assertReportsAreMade(session)
    const producing = await openProducer(session, options.client, options.wait ? ['bulk'] : [])
    const { entity = producing.credentials.entityId } = options
    await assertMayRequest(session, producing.credentials.signingKey.clientId)
    const asked = { report_type: type, entity_id: entity, parameters, mime_type: mime, ...(refresh ? { refresh } : {}) }
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

/** The worker checks the parameters, too; here the user gets the error at once. */
function assertParameters(type: ReportType, parameters: Record<string, string>): void {
  const plan = definitionOf(type)?.plan(parameters)
  if (plan && isRefusal(plan)) throw new Stop(fieldsText(fieldsOf(plan)), EXIT.usage)
}

/** Checks the client's roles, if a store can be reached; otherwise only a worker can. */
async function assertMayRequest(session: Session, clientId: string): Promise<void> {
  if (storeMode(session.config) === 'none') return
  const client = await openCommandStore(session)
    .then(({ store }) => clients.find(store, clientId))
    .catch(error => {
      if (!(error instanceof Fault)) throw error
    })
  if (client && !client.roles.includes(ROLE))
    throw new Stop(`${LACKS_ROLE}; name another client with --client.`, EXIT.usage)
}

/** Sends the job. The answer goes to the client's own results queue, which another program reads. */
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
      const reasons = reasonsIn(error)
      if (reasons.some(({ reason }) => reason === UNAVAILABLE)) throw new Stop(REASONS[UNAVAILABLE].text, EXIT.config)
      const text = fieldsText(reasons) || error.message
      if (error.code < 500) throw new Stop(`A worker refused it: ${text}`, EXIT.incomplete)
      throw new Stop(`The report failed (code ${error.code}, ${moment(error.timestamp)}). ${FAILED_NEXT}`)
    }
    print(terminal, options, record, [`${record?.['reportUid']}`, `${record?.['fileName']}`])
    if (!options.json)
      say(terminal, `Download it: tokenmill report download ${record?.['reportUid']} --out ${record?.['fileName']}`)
  } catch (thrown) {
    throw thrown instanceof RefusedError ? new Stop(fieldsText(fieldsOf(thrown.refusal)), EXIT.usage) : thrown
  } finally {
    await client.close()
    await queues.obliterate(resultsQueue(client.clientId, replyTo)).catch(() => {})
  }
}

/** The option of the command line that sets a field of the job. */
const optionOf = (field: string): string => field.replace(/^body\.parameters\./, '--parameter ')

const fieldsText = (fields: FieldReason[]): string =>
  fields.map(one => (one.reason === ROLE_MISSING ? LACKS_ROLE : `${optionOf(one.field)}: ${textOf(one)}`)).join('; ')
