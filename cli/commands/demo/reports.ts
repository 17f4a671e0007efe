// The demo's reports: what the migration did, as a PDF; and the nightly report of a sample day of transactions, made by
// the schedule as it would be at night.
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, connect } from '../../../producers/client.ts'
import { ingest } from '../../../producers/ingest/run.ts'
import { openScheduleMetrics } from '../../../producers/schedule/metrics.ts'
import { systemClock } from '../../../src/clock.ts'
import { openRegistry } from '../../../src/metrics.ts'
import { readReport } from '../../../src/report/files/download.ts'
import * as reports from '../../../src/store/report/reports.ts'
import * as runs from '../../../src/store/report/schedule-runs.ts'
import * as schedules from '../../../src/store/report/schedules.ts'
import { openUngrantedCounter } from '../../../src/vault/ring/ungranted.ts'
import { poolsOf } from '../../open/connections.ts'
import { openCommandStore, openQueues, type Session } from '../../open/open.ts'
import { openReportFiles } from '../../open/report-files.ts'
import type { Producing } from '../../process/producer.ts'
import { startSchedule } from '../../process/scheduler.ts'

const DAY_MS = 86_400_000
const TRANSACTIONS = 500
const NIGHT_MS_MAX = 60_000

/** Requests the report of a batch, as any client does. Returns where the file is. */
export async function reportBatch(session: Session, producing: Producing, batchId: string): Promise<string> {
  const client = await connect({ ...producing, replyTo: 'demo', log: session.log })
  try {
    return await save(session, await uidOf(client, producing, batchId))
  } finally {
    await client.close()
  }
}

async function uidOf(client: Client, { credentials }: Producing, batchId: string): Promise<string> {
  const { record, error } = await client.call('report', {
    report_type: 'BATCH_REPORT',
    entity_id: credentials.entityId,
    parameters: { batchId },
    mime_type: 'application/pdf',
  })
  if (!record) throw new Error(error?.message ?? 'no report')
  return String(record['reportUid'])
}

/** Ingests a day of transactions and has the schedule make its report. Returns where the file is. */
export async function reportNight(session: Session, { queues, credentials }: Producing): Promise<string> {
  const { config, log, terminal, lifetime } = session
  const { store, database } = await openCommandStore(session)
  const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const file = join(config.dataDir, 'transactions.ndjson')
  await writeFile(file, sampleDay(credentials.entityId, midnight - DAY_MS))
  await ingest(
    { file, chunk: 250, inFlight: 4, ignoreUnknown: false },
    {
      queues,
      credentials,
      log,
      clock: systemClock,
      stop: new AbortController().signal,
      stream: terminal.stderr as NodeJS.WriteStream,
    },
  )
  const scheduleId = randomUUID()
  await schedules.insert(store, {
    scheduleId,
    clientId: credentials.signingKey.clientId,
    entityId: credentials.entityId,
    parameters: {},
    reportType: 'DAILY_TRANSACTION_REPORT',
    mimeType: 'text/csv',
    time: '00:00',
    zone: 'UTC',
    // The schedule counts as made before last midnight, so that last night's run is due.
    since: midnight - 3_600_000,
  })
  const listening = await openQueues(session, database, poolsOf(session, 'scheduler').queues)
  await startSchedule(session, {
    store,
    queues: listening,
    log,
    clock: systemClock,
    metrics: openScheduleMetrics(openRegistry({ role: 'demo' })),
    ungranted: openUngrantedCounter(openRegistry({ role: 'demo' })),
  })
  const deadline = Date.now() + NIGHT_MS_MAX
  lifetime.onClose('schedule of the demo', () => schedules.remove(store, scheduleId))
  for (;;) {
    const [run] = await runs.listOf(store, scheduleId, 1)
    if (run?.state === 'SUCCEEDED' && run.reportUid) return save(session, run.reportUid)
    if (run?.state === 'FAILED' || Date.now() > deadline) throw new Error(`the nightly run is ${run?.state}`)
    await pause(100)
  }
}

async function save(session: Session, reportUid: string): Promise<string> {
  const { store } = await openCommandStore(session)
  const found = await reports.find(store, reportUid)
  if (!found || found.storageKey === null || found.bytes === null || found.sha256 === null || found.fileName === null)
    throw new Error(`report ${reportUid} is ${found?.status}`)
  const { storageKey, bytes, sha256, fileName } = found
  const content = await readReport(openReportFiles(session), { storageKey, bytes, sha256 })
  if (!content) throw new Error(`the file of report ${reportUid} is missing`)
  const path = join(session.config.dataDir, fileName)
  await pipeline(content, createWriteStream(path))
  return path
}

const CURRENCIES = ['EUR', 'JPY', 'KWD'] as const
const DIGITS = { EUR: 2, JPY: 0, KWD: 3 } as const

/** Sales, and now and then a refund, in currencies of two, no and three digits. */
export function sampleDay(entityUid: string, from: number): string {
  const lines = Array.from({ length: TRANSACTIONS }, (_, index) => {
    const currency = CURRENCIES[index % CURRENCIES.length] ?? 'EUR'
    const isRefund = index % 17 === 0
    const minor = ((index * 7_919) % 20_000) + 500
    return JSON.stringify({
      transaction_uid: randomUUID(),
      entity_uid: entityUid,
      merchant_reference: `order-${index + 1}`,
      type: isRefund ? 'REFUND' : 'SALE',
      brand: index % 2 === 0 ? 'VISA' : 'MASTERCARD',
      masked_card: index % 2 === 0 ? '411111******1111' : '555555******4444',
      currency,
      amount: major(isRefund ? -minor : minor, DIGITS[currency]),
      fee: major(Math.floor(minor / 100), DIGITS[currency]),
      commission: major(Math.floor(minor / 200), DIGITS[currency]),
      created_at: new Date(from + index * 170_000).toISOString(),
      settlement_batch: `S-${Math.floor(index / 100) + 1}`,
    })
  })
  return `${lines.join('\n')}\n`
}

function major(minor: number, digits: number): string {
  const text = String(Math.abs(minor)).padStart(digits + 1, '0')
  const sign = minor < 0 ? '-' : ''
  return digits === 0 ? `${sign}${text}` : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`
}
