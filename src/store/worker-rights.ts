// The rights on each table of the database user of workers, scheduler and 3-D Secure service: only those that these
// roles use, and none that only an operator's command uses. So a worker that was taken over can't rewrite the audit,
// nor add a client. Rights beyond tables are in the migration 0047. Each upgrade grants them anew.
import type pg from 'pg'

const ALL = `select, insert,
update, delete`

/** By table; a new table has to be named here. An empty text: none. */
export const WORKER_RIGHTS: Readonly<Record<string, string>> = {
  // Retention removes old ones.
  act_nonce: `select, insert,
update (audit_id), delete`,
  audit: 'select, insert (actor, action, subject, detail, host, outcome, entity_id)',
  audit_chain: `select,
update`,
  authentication: ALL,
  batch: `select, insert,
update`,
  // Thinned as a batch goes on, and removed by retention.
  batch_sample: 'select, insert, delete',
  before_image: ALL,
  bin_range: 'select',
  challenge: '',
  // Retention destroys private halves.
  // Workers also turn them, and say when they were used; a public half is never changed.
  capture_key: `select, insert,
update (state, wrapped_private, private_version, retired_at, destroyed_at, mac, mac_version, statement, stated_by, stated_until, last_used_at, last_used_by, told_at)`,
  capture_turning: 'select',
  card: 'select, insert, delete',
  // An operator changes the phase.
  card_phase: 'select',
  // Locking a row takes the right to update some column of it.
  client: `select,
update (created_at)`,
  client_key: 'select',
  cluster: `select,
update (timeline, seen_at)`,
  // Retention removes what has expired.
  confirmation: 'select, delete',
  // A key that has made its share of seals is replaced by the worker that sees it.
  data_key: `select, insert,
update (state, seals, activated_at, retired_at)`,
  delivery: ALL,
  // Commands write it, and the console reads it.
  display: '',
  dropped_envelope: `select, insert,
update`,
  dry_run: ALL,
  // Only operators decide where events go; workers deliver them and seal secrets anew.
  endpoint: `select,
update (sealed, seal_version, former_sealed, former_version, slow_until, at_once, disabled_at)`,
  event: ALL,
  failed_act: `select, insert,
update (due_at, tries, outcome), delete`,
  guess: ALL,
  installation: `select,
update (reports_made_at)`,
  intake: 'select',
  intake_chunk: 'select',
  kek: 'select',
  key_notice: 'select, insert',
  kysely_migration: 'select',
  kysely_migration_lock: '',
  ledger_uid: 'select, insert',
  live_list: `select,
update`,
  manifest_key: `select,
update`,
  manifest_part: `select, insert,
update`,
  manifest_run: ALL,
  manifest_total: `select,
update, delete`,
  // The console's own.
  openid_flow: '',
  operation: 'select',
  order: `select, insert,
update`,
  outbox: ALL,
  // A person enrols by an invite, and uses a passkey; an administrator invites, changes and revokes. Locking the table of people
  // takes the right to update the whole of it. A row that is changed without the key has no right code.
  invite: `select, insert,
update (used_at, mac, mac_version)`,
  person: `select, insert,
update`,
  person_credential: `select, insert,
update (sign_count, last_used_at, revoked_at, mac, mac_version)`,
  person_identity: `select, insert,
update (revoked_at, mac, mac_version)`,
  // The console's own: it keeps sessions, challenges and acts that wait for a person.
  pending_act: '',
  process: ALL,
  receipt: `select, insert,
update`,
  receipt_key: ALL,
  released_reference: ALL,
  reply_queue: ALL,
  report: ALL,
  reseal: `select,
update`,
  // Private halves are sealed anew; new versions of keys are encrypted for gateways.
  role_key: `select,
update (sealed, key_version)`,
  // People pause and resume it in the console.
  schedule: `select,
update (paused_at, resumed_at)`,
  schedule_run: ALL,
  // Compared at every start.
  schema_range: 'select',
  scheme_intent: ALL,
  scheme_notice: ALL,
  scheme_rate: ALL,
  scheme_token: ALL,
  scheme_card: 'select, insert, delete',
  scope: 'select',
  scratch: ALL,
  scratch_run: ALL,
  session: '',
  sequence_mark: `select, insert,
update`,
  // Workers begin to sign with an announced key; an operator announces it.
  signing_key: `select,
update (state, wrapped_private, private_version, active_at, retired_at)`,
  shared_key: 'select, insert',
  signing_key_reader: `select, insert,
update`,
  source_reference: ALL,
  // Its key is sealed anew, and a former one is erased.
  threeds_contract: `select,
update (key_sealed, key_version, former_key_sealed, former_key_version, former_until)`,
  threeds_jwt: ALL,
  token: ALL,
  transaction: 'select, insert',
  // The scheduler says here how the installation is.
  watch_check: ALL,
  watch_minute: ALL,
  watch_queue: ALL,
  work_minute: ALL,
}

/**
 * Gives the role `tokenmill_worker` these rights on tables, and no other. Writes nothing if the role has exactly these
 * rights already.
 */
export async function grant(db: Pick<pg.Pool, 'query'>): Promise<void> {
  if (await isGranted(db)) return
  const statements = Object.entries(WORKER_RIGHTS).flatMap(([table, rights]) => [
    `revoke all on tokenmill."${table}" from tokenmill_worker`,
    ...(rights === '' ? [] : [`grant ${rights} on tokenmill."${table}" to tokenmill_worker`]),
  ])
  // In one message, and so in one transaction: a running worker never lacks a right.
  await db.query(statements.join(';\n'))
}

const GRANTED = `with tables as (
  select oid, relname, relacl
  from pg_class
  where relnamespace = 'tokenmill'::regnamespace and relkind in ('r', 'p')
)
select relname || ' ' || lower(privilege_type) as name
from tables, aclexplode(relacl)
where grantee = 'tokenmill_worker'::regrole
union all
select relname || ' ' || lower(privilege_type) || ' ' || attname
from tables
join pg_attribute on attrelid = tables.oid, aclexplode(attacl)
where grantee = 'tokenmill_worker'::regrole`

async function isGranted(db: Pick<pg.Pool, 'query'>): Promise<boolean> {
  const { rows } = await db.query<{ name: string }>(GRANTED)
  const said = Object.entries(WORKER_RIGHTS).flatMap(([table, rights]) =>
    [...rights.matchAll(/(\w+)(?: \(([^)]*)\))?/g)].flatMap(([, right = '', columns]) =>
      columns === undefined ? [`${table} ${right}`] : columns.split(', ').map(column => `${table} ${right} ${column}`),
    ),
  )
  return rows.length === said.length && rows.every(({ name }) => said.includes(name))
}
