// What the core has in the database.
import { ALL, type Tables } from './tables.ts'

export const CORE_TABLES: Tables = {
  sql: 'core',
  rights: {
    audit: 'select, insert (actor, action, subject, detail, host, outcome, entity_id)',
    audit_chain: `select,
  update`,
    batch: `select, insert,
  update`,
    // Thinned as a batch goes on, and removed by retention.
    batch_sample: 'select, insert, delete',
    before_image: ALL,
    bin_range: 'select',
    // Retention destroys private halves.
    // Workers also turn them, and say when they were used; a public half is never changed.
    capture_key: `select, insert,
  update (
    state,
    wrapped_private,
    private_version,
    retired_at,
    destroyed_at,
    mac,
    mac_version,
    statement,
    stated_by,
    stated_until,
    last_used_at,
    last_used_by,
    told_at
  )`,
    capture_turning: 'select',
    card: 'select, insert, delete',
    // Locking a row takes the right to update some column of it.
    client: `select,
  update (created_at)`,
    // A worker notes that it has verified what a system client's new key signed.
    client_key: `select,
  update (verified_at)`,
    cluster: `select,
  update (timeline, seen_at)`,
    data_key: `select, insert,
  update (state, seals, activated_at, retired_at)`,
    delivery: ALL,
    dropped_envelope: `select, insert,
  update`,
    dry_run: ALL,
    // Only operators decide where events go; workers deliver them and seal secrets anew.
    endpoint: `select,
  update (
    sealed,
    seal_version,
    former_sealed,
    former_version,
    slow_until,
    at_once,
    disabled_at
  )`,
    event: ALL,
    guess: ALL,
    installation: `select,
  update (reports_made_at)`,
    intake: 'select',
    intake_chunk: 'select',
    kek: 'select',
    // A key that has made its share of seals is replaced by the worker that sees it. A row without the KEK's proof is believed by
    // nobody.
    key_lives: `select,
  update`,
    kysely_migration: 'select',
    kysely_migration_lock: '',
    live_list: `select,
  update`,
    operation: 'select',
    outbox: ALL,
    process: ALL,
    receipt: `select, insert,
  update`,
    receipt_key: ALL,
    released_reference: ALL,
    reply_queue: ALL,
    // Private halves are sealed anew; new versions of keys are encrypted for gateways.
    role_key: `select,
  update (sealed, key_version)`,
    // Compared at every start.
    schema_range: 'select',
    scope: 'select',
    scratch: ALL,
    scratch_run: ALL,
    sequence_mark: `select, insert,
  update`,
    // Workers begin to sign with an announced key; an operator announces it.
    signing_key: `select,
  update (state, wrapped_private, private_version, active_at, retired_at)`,
    shared_key: 'select, insert',
    signing_key_reader: `select, insert,
  update`,
    source_reference: ALL,
    token: ALL,
    work_minute: ALL,
  },
  indexes: [
    {
      name: 'token_due',
      on: 'tokenmill.token (token_expiry_date, token_id) where token_expiry_date is not null and expiry_is_done is null',
    },
  ],
}
