// Schedules in every state, with runs that ended well and badly, and rows of the audit.
import { randomUUID } from 'node:crypto'
import { dateOf, dayAfter } from '../../../../src/job/schedule/business-dates.ts'
import { type ConsoleBundle, OURS, type Person } from '../bundle.ts'

/** Paths of pages. */
export interface SchedulePages {
  schedule: string
  failedRun: string
  madeRun: string
  auditRow: string
}

export async function fillSchedules(
  { installation, rows }: Pick<ConsoleBundle, 'installation' | 'rows'>,
  { personId }: Pick<Person, 'personId'>,
): Promise<SchedulePages> {
  const { clientId } = installation.credentials.signingKey
  const date = dayAfter(dateOf(Date.now()), -1)
  /** Added a minute ago, so that nothing is missed. `more`: assignments of SQL. */
  const add = async (type: string, more?: string) => {
    const id = randomUUID()
    await rows(
      `insert into tokenmill.schedule (schedule_id, kind, client_id, report_type, entity_id, mime_type, time, zone, created_at)
values ($1, 'report', $2, $3, $4, 'text/csv', '02:00', 'America/Argentina/Buenos_Aires', now() - interval '1 minute')`,
      [id, clientId, type, OURS],
    )
    if (more !== undefined) await rows(`update tokenmill.schedule set ${more} where schedule_id = $1`, [id])
    return id
  }
  const run = async (id: string, columns: { state: string; reason?: string; due?: string; receiptId?: string }) => {
    const { state, reason = null, due = '1 minute', receiptId = null } = columns
    const ended = state === 'QUEUED' ? null : new Date()
    await rows(
      `insert into tokenmill.schedule_run (schedule_id, business_date, entity_id, state, due_at, next_at, reason, ended_at, receipt_id)
values ($1, $2, $3, $4, now() - $5::interval, $6, $7, $8, $9)`,
      [id, date, OURS, state, due, ended === null ? new Date() : null, reason, ended, receiptId],
    )
    return `/reports/runs/${id}/${date}/${OURS}`
  }
  await add('BATCH_REPORT', `paused_at = now() - interval '2 days'`)
  await add('MERCHANT_SETTLEMENT_REPORT', `created_at = now() - interval '9 days'`)
  await run(await add('INVOICE'), { state: 'QUEUED', due: '5 hours' })
  const failing = await add('TOKEN_ACTIVITY_REPORT')
  const failedRun = await run(failing, { state: 'FAILED', reason: 'role_missing' })
  const madeRun = await addMade({ rows }, receiptId =>
    add('INVOICE').then(id => run(id, { state: 'SUCCEEDED', receiptId })),
  )
  return { schedule: `/reports/schedules/${failing}`, failedRun, madeRun, auditRow: await addAudit({ rows }, personId) }
}

/** A run with its report. */
async function addMade(
  { rows }: Pick<ConsoleBundle, 'rows'>,
  run: (receiptId: string) => Promise<string>,
): Promise<string> {
  const receiptId = randomUUID()
  await rows(
    `insert into tokenmill.report (report_uid, report_type, report_parameter, mime_type, report_entity_uid, status, client_id, request_key,
  file_name, storage_key, bytes, sha256, lines, totals, period_closed, as_of, created_on, modified_on)
values ($1, 'INVOICE', '{}', 'text/csv', $2, 'SUCCESSFUL', 'c', 'k', $3, $4, 12345, sha256('x'), 41200, '[]', true, now(), now() - interval '12 s', now())`,
    [receiptId, OURS, `invoice-${'2026-11-'.repeat(6)}.csv`, `reports/${OURS}/invoice-${'2026-11-'.repeat(6)}.csv`],
  )
  return run(receiptId)
}

/** Returns the path of a row that holds more than others do. */
async function addAudit({ rows }: Pick<ConsoleBundle, 'rows'>, personId: string): Promise<string> {
  const add = async (
    action: string,
    subject: string,
    { outcome = 'done', detail = {}, actor = `person:${personId}` },
  ) => {
    const [made] = await rows<{ id: number }>(
      `insert into tokenmill.audit (actor, action, subject, outcome, detail, host) values ($1, $2, $3, $4, $5, 'vault-1') returning audit_id as id`,
      [actor, action, subject, outcome, JSON.stringify(detail)],
    )
    return `/audit/${made?.id}`
  }
  await add('client.add', 'shop', { outcome: 'refused', detail: { why: 'act_state' }, actor: 'cli:root' })
  await add('audit.verify', 'audit', {
    outcome: 'failed',
    actor: 'cli:root',
    detail: { to: 41_200, findings: 2, segments: 40 },
  })
  return add('batch.pause', `winter-${'x'.repeat(60)}`, {
    outcome: 'failed',
    detail: { reason: 'the file is wrong, '.repeat(8), why: 'changed_meanwhile', list: { a: 1, long: 'y'.repeat(90) } },
  })
}
