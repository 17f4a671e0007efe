// A webhook to an operator's client names the page of the console that shows more; a webhook to any other client names none.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { EVENTS, type EventType } from '../../../src/job/event.ts'
import { openLog } from '../../../src/log.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import { tell } from '../../../src/store/event/tell.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { findRunOf } from '../../../src/store/report/schedule-runs.ts'
import { makeWebhookSecret } from '../../../src/vault/webhook-secret.ts'
import { consoleLink } from '../../../workers/webhook/console-link.ts'
import { openWebhook } from '../../../workers/webhook.ts'
import { CODER } from '../../store/coder.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const ORIGIN = 'https://console.example.com'
const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const [OPERATORS, SHOPS] = ['c'.padEnd(26, '1'), 'c'.padEnd(26, '2')]

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 2 })
  for (const [clientId, roles] of [
    [OPERATORS, '{ADMIN}'],
    [SHOPS, '{TOKEN_WRITE}'],
  ]) {
    await query(
      `insert into tokenmill.client (client_id, name, user_id, entities, roles, system) values ($1, $1, gen_random_uuid(), $2, $3, false)`,
      [clientId, `{${ENTITY}}`, roles],
    )
    await query(
      `insert into tokenmill.endpoint (endpoint_id, client_id, url, events, sealed, seal_version, mac, mac_version)
values (gen_random_uuid(), $1, 'https://shop.example/hooks', $2, 's', 1, 'm', 1)`,
      [clientId, EVENTS],
    )
  }
})
afterAll(async () => {
  await store?.close()
  await database?.drop()
})
const query = async <R>(text: string, values: unknown[] = []) => (await store.query<R>({ text, values })).rows

/** The link in the body that is posted for an event. */
async function linkOf(
  clientId: string,
  type: EventType,
  data: Record<string, unknown>,
  origin = ORIGIN,
): Promise<unknown> {
  await query('delete from tokenmill.delivery')
  await store.transaction(db => tell(db, CODER, { type, clientId, subject: randomUUID(), revision: 1, data }))
  const [claimed] = await deliveries.claim(store, { leaseMs: 60_000, limit: 1 })
  const { deliveryId, attempt } = claimed ?? expect.fail('no delivery')
  let body = ''
  const deps = {
    store,
    ring: {
      openWebhookSecret: () => makeWebhookSecret(),
      grantMacBy: () => Buffer.from('m'),
      ...CODER,
    },
    clock: Date.now,
  } as never
  const outgoing = await deliveries.findOutgoing(store, deliveryId, attempt)
  const webhook = openWebhook({
    webhooks: {
      schedule: [1],
      post: async (_to: unknown, sent: { body: string }) => {
        body = sent.body
        return { status: 204, retryAfter: undefined }
      },
    },
    console: { origin },
    findRun: findRunOf,
  } as never)
  await webhook.reach?.({} as never, { outgoing }, deps, undefined)
  const { data: told } = JSON.parse(body) as { data: Record<string, unknown> }
  const { console_url: link, ...others } = told
  expect(others).toEqual(data)
  return link
}

it('names the batch’s page by its number, and the page of a schedule’s run', async () => {
  const [batch] = await query<{ no: number }>(
    `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at) values ($1, 'b-1', 'token-create', 10, '{}', now())
returning batch_no as no`,
    [OPERATORS],
  )
  expect(await linkOf(OPERATORS, 'batch.stalled', { batch_id: 'b-1' })).toBe(`${ORIGIN}/batches/${batch?.no}`)
  expect(await linkOf(OPERATORS, 'batch.finished', { batch_id: 'none' })).toBe(`${ORIGIN}/batches`)
  const reportUid = randomUUID()
  const [run] = await query<{ id: string }>(
    `insert into tokenmill.schedule_run (schedule_id, business_date, entity_id, receipt_id, due_at, next_at)
select schedule_id, '2026-11-22', $1, $2, now(), now() from tokenmill.schedule returning schedule_id as id`,
    [ENTITY, reportUid],
  )
  const path = `/reports/runs/${run?.id}/2026-11-22/${ENTITY}`
  expect(await linkOf(OPERATORS, 'report.failed', { report_uid: reportUid })).toBe(`${ORIGIN}${path}`)
  expect(await linkOf(OPERATORS, 'report.succeeded', { report_uid: randomUUID() })).toBe(`${ORIGIN}/reports`)
  expect(await linkOf(OPERATORS, 'key.expiring', { key: 'seal/1' })).toBe(`${ORIGIN}/now`)
})

it('is not told to other clients, nor where nobody said where the console is', async () => {
  expect(await linkOf(SHOPS, 'batch.stalled', { batch_id: 'b-1' })).toBeUndefined()
  expect(await linkOf(OPERATORS, 'batch.stalled', { batch_id: 'b-1' }, 'http://localhost:8090')).toBeUndefined()
  const at = { isOperators: true, batchNo: null }
  const links = await Promise.all(
    EVENTS.map(async type => ({
      type,
      link: await consoleLink({ ...at, type }, { origin: ORIGIN }, async () => undefined),
    })),
  )
  expect(links.flatMap(({ type, link }) => (link === undefined ? [type] : []))).toEqual([
    'scheme-token.updated',
    'reference.released',
  ])
})
