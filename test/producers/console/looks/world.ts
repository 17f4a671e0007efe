// What the pages of these tests show: batches in every state, jobs that were decided or failed, a token, and what a scheduler
// and workers say of themselves.
import { createHash, randomBytes } from 'node:crypto'
import type { Client } from '../../../../producers/client.ts'
import { pack, type RecordOutcome } from '../../../../src/job/chunk-outcomes.ts'
import { CATALOGUE } from '../../../../src/job/composition.ts'
import { receiptId } from '../../../../src/job/envelope/ids.ts'
import { noCounts } from '../../../../src/job/outcome.ts'
import * as processes from '../../../../src/store/access/processes.ts'
import * as watched from '../../../../src/store/watch/watched.ts'
import { parseReuseToken } from '../../../../src/token/token.ts'
import { failCopy, KIND } from '../../../workers/act/failed-copies.ts'
import type { ConsoleBundle, Person } from '../bundle.ts'
import type { OpenIdBundle } from '../openid/bundle.ts'
import { fillRights, type RightsPages } from './rights.ts'
import { fillSchedules, type SchedulePages } from './schedules.ts'

const CARD = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030, cardholderName: 'ANNA MEYER' }

/** What the addresses of pages name. */
export interface World extends SchedulePages, RightsPages {
  running: number
  paused: number
  stalled: number
  finished: number
  /** The paths of a failed job, of two decided jobs and of a token. */
  copy: string
  /** Ids of failed jobs, of which the last can't be sent again. */
  ticked: string[]
  refusedJob: string
  job: string
  token: string
  /** Numbers of acts that were sent: one waits, one is done, one is refused, of one nothing is known. */
  nonces: string[]
  /** The same of the addition of a passkey, and of an enrolment. */
  added: string[]
  enrolled: string
  /** The path of a passkey's end. */
  removal: string
}

/** An installation where something is in every state. Workers for single jobs must be there. */
export async function fillWorld(bundle: OpenIdBundle, person: WorldPerson): Promise<World> {
  const { credentials, queues } = bundle.installation
  const numbers = await addBatches(bundle)
  const reference = 'order 2026-11-20 / 17'
  const copies = await Promise.all(
    ['files_away', 'internal', 'contention'].map(code => failCopy(queues, { credentials, code, reference })),
  )
  copies.push(await failCopy(queues, { credentials, isEmptied: true }))
  const client = await bundle.installation.connect()
  const jobs = await sendJobs(client, bundle.installation.scope)
  await client.close()
  await addRefused(bundle, numbers.running)
  await addNote(bundle, person)
  await beat(bundle)
  const acts = { ...(await addVerdicts(bundle, person, numbers.paused)), removal: await addPasskeys(bundle, person) }
  const failed = { copy: `/failed/${KIND}/${copies[0]?.id}`, ticked: copies.map(({ id }) => id) }
  const rest = { ...(await fillSchedules(bundle, person)), ...(await fillRights(bundle, person)) }
  return { ...numbers, ...failed, ...jobs, ...acts, ...rest }
}

/** A receipt of a chunk of which every third row is refused. */
async function addRefused(bundle: ConsoleBundle, batchNo: number): Promise<void> {
  const counts = noCounts()
  const records = Array.from({ length: 30 }, (_, at): RecordOutcome => {
    const isRefused = at % 3 === 0
    const refused = { outcome: 'REJECTED', reason: 'pan_luhn', field: 'body.pan' } as const
    const outcome = isRefused ? refused : ({ outcome: 'CREATED', reason: undefined, field: undefined } as const)
    counts[outcome.outcome] += 1
    return { line: at + 2, reference: `customer ${at}`, token: undefined, ...outcome }
  })
  await bundle.rows(
    `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code, batch_no,
  chunk, counts, outcomes, revision, attempt, accepted_at, completed_at)
values (gen_random_uuid(), current_date, 'c', 'c', 'token-batch', 'chunk-1', '', '', 'SUCCEEDED', 200, $1, 1, $2, $3, 1, 1, now(), now())`,
    [batchNo, JSON.stringify(counts), pack(records)],
  )
}

async function addNote({ rows, installation }: ConsoleBundle, { personId }: WorldPerson): Promise<void> {
  const detail = {
    client_id: installation.credentials.signingKey.clientId,
    reason: 'part 3 comes on Monday, '.repeat(9),
  }
  await rows(
    `insert into tokenmill.audit (actor, action, subject, detail) values ($1, 'batch.note', '2026-11-20-autumn', $2)`,
    [`person:${personId}`, JSON.stringify(detail)],
  )
}

type WorldPerson = Pick<Person, 'personId' | 'sessionHash'>

const VERDICTS = [
  null,
  { done: true, auditId: null },
  { done: false, reason: 'changed_meanwhile', text: 'It has changed since the page was made.' },
  { done: null },
]

async function addVerdicts(
  bundle: ConsoleBundle,
  { personId, sessionHash }: WorldPerson,
  batchNo: number,
): Promise<Pick<World, 'nonces' | 'added' | 'enrolled'>> {
  const add = async (act: string, verdict: object | null, batch: number | null) => {
    const nonce = randomBytes(16).toString('base64url')
    const request = { act, subject: 'winter', person_id: personId, reason: 'the file is wrong', parameters: {} }
    await bundle.rows(
      `insert into tokenmill.pending_act (nonce, session_hash, batch_no, request, expires_at, sent_at, verdict)
values ($1, $2, $3, $4, now() + interval '1 hour', now(), $5)`,
      [
        nonce,
        act === 'person.enrol' ? null : sessionHash,
        batch,
        JSON.stringify(request),
        verdict && JSON.stringify(verdict),
      ],
    )
    return nonce
  }
  return {
    nonces: await Promise.all(VERDICTS.map(verdict => add('batch.pause', verdict, batchNo))),
    added: await Promise.all(VERDICTS.map(verdict => add('passkey.add', verdict, null))),
    enrolled: await add('person.enrol', null, null),
  }
}

/** Two passkeys, so that one can be removed. Returns the path of the first one's end. */
async function addPasskeys(bundle: ConsoleBundle, { personId }: WorldPerson): Promise<string> {
  await bundle.rows(
    `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count)
select 'passkey-' || n || '-of-ada-on-a-device', $1, '{}', 'ES256', 'localhost', 0 from generate_series(1, 2) as n`,
    [personId],
  )
  const handle = createHash('sha256').update('passkey-1-of-ada-on-a-device').digest('hex').slice(0, 16)
  return `/passkeys/${handle}/remove`
}

async function addBatches(bundle: ConsoleBundle): Promise<Pick<World, 'running' | 'paused' | 'stalled' | 'finished'>> {
  const counts = { CREATED: 300_000, UPDATED: 80_000, REJECTED: 1_200, FAILED: 31 }
  const reasons = `reasons = '{"REJECTED": {"pan_luhn": 777, "card_expired": 423}, "FAILED": {"internal": 31}}'`
  const begun = `created_at = now() - interval '1 hour'`
  const source = `source_name = 'autumn/part-2.csv', source_sha256 = '${'ab'.repeat(32)}'`
  const figures = { extentRows: 900_000, rowsDone: 381_231, counts }
  const running = await bundle.addBatch({
    batchId: '2026-11-20-autumn',
    ...figures,
    more: `${begun}, active_at = now(), extent_chunks = 900, chunks_done = 382, ${reasons}, ${source}`,
  })
  await bundle.rows(
    `insert into tokenmill.batch_sample (batch_no, at, rows_done, rows_refused, state)
select $1, now() - make_interval(mins => 60 - n), n * 6350, n * 20, case when n between 20 and 32 then 'PAUSED' when n between 40 and 43 then 'STALLED' else 'RUNNING' end
from generate_series(0, 60) as n`,
    [running],
  )
  const paused = await bundle.addBatch({
    batchId: 'winter',
    ...figures,
    more: `${begun}, active_at = now() - interval '9 minutes', paused_at = now() - interval '9 minutes'`,
  })
  const stalled = await bundle.addBatch({
    batchId: `spring-${'x'.repeat(50)}`,
    ...figures,
    more: `${begun}, active_at = now() - interval '12 minutes', ${reasons}`,
  })
  const ended = { extentRows: 1_000, rowsDone: 1_000, counts: { CREATED: 990, REJECTED: 10 } }
  const finished = await bundle.addBatch({
    batchId: 'summer',
    ...ended,
    more: `${begun}, chunks_done = 1, finished_at = now(), revision = 1`,
  })
  await bundle.addBatch({ batchId: 'open-one', extentRows: null, rowsDone: 41_200 })
  await bundle.addBatch({
    batchId: 'cancelled',
    ...figures,
    more: `${begun}, cancelled_at = now()`,
  })
  await bundle.addBatch({
    batchId: 'left-alone',
    ...figures,
    more: `created_at = now() - interval '20 days', active_at = now() - interval '12 days'`,
  })
  return { running, paused, stalled, finished }
}

/** A token that was made, a repeat of it, and a refused change. */
async function sendJobs(client: Client, scope: string): Promise<Pick<World, 'job' | 'refusedJob' | 'token'>> {
  const made = await client.call(
    'token-create',
    { token_scope: scope, ...(await client.encryptCard(CARD)) },
    { jti: 'order-17', reference: 'customer 17' },
  )
  await client
    .call('token-lifecycle', { id: 't00000000000000000000000000', action: 'SUSPEND' }, { jti: 'order-18' })
    .catch(() => undefined)
  const token = parseReuseToken(String(made.record?.['reuse_token']))
  return {
    job: `/explain/jobs/${receiptId(client.clientId, 'order-17')}`,
    refusedJob: `/explain/jobs/${receiptId(client.clientId, 'order-18')}`,
    token: `/explain/tokens/${token}`,
  }
}

const AT = { host: 'vault-1', version: '1.0.0', connections: 1, keys: [], features: [] }
const IDS = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'] as const

/** As workers and a scheduler say it every few seconds: one host is well, and a batch is stalled. */
export async function beat({ installation }: Pick<ConsoleBundle, 'installation'>): Promise<void> {
  const { store } = installation.vault
  await processes.see(store, { ...AT, processId: IDS[0], role: 'bulk', kinds: CATALOGUE.kinds })
  await processes.see(store, { ...AT, processId: IDS[1], role: 'scheduler', kinds: [] })
  const next = '`tokenmill batch list --state stalled`'
  await watched.writeChecks(store, [
    { name: 'store', state: 'well', says: 'it answers', next: null },
    { name: 'batches', state: 'warning', says: '1 batch is stalled', next },
    { name: 'failed jobs', state: 'critical', says: '4 jobs failed for good', next: '`tokenmill failed list`' },
    { name: 'backlog', state: 'unknown', says: 'the queues did not answer', next: null },
  ])
  await watched.writeQueues(
    store,
    CATALOGUE.kinds.map((kind, at) => ({
      kind,
      waiting: at * 1_234,
      active: at,
      delayed: 0,
      oldestMs: at * 9_000,
      failed: at,
    })),
  )
  await watched.writeMinute(store, { outboxMs: 900, queued: { interactiveMs: 120, failed: 4 } })
  await installation.vault.store.query({
    text: `insert into tokenmill.watch_minute (minute, outbox_ms, outbox_last_ms, interactive_ms, failed)
select date_trunc('minute', now()) - make_interval(mins => n), (n * 397) % 4000, 0, (n * 7919) % 1500, n / 20
from generate_series(1, 50) as n on conflict do nothing`,
    values: [],
  })
}
