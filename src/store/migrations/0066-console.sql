-- What the console keeps, and its own database role. The console writes these three tables and its heartbeat, and
-- nothing else: people, their passkeys and every act are written by workers and by commands. Upgrades make the role.
create table tokenmill.session (
  -- SHA-256 of the cookie's value, which nobody keeps.
  session_hash bytea primary key,
  person_id uuid not null,
  created_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  expires_at timestamptz not null,
  -- Where the person signed in from, as the console saw it.
  address text not null,
  revoked_at timestamptz,
  -- Signed in by the link that `start` printed, without a passkey.
  is_local boolean not null default false,
  constraint session_hash_is_sha256 check (length(session_hash) = 32),
  constraint session_lasts_8_hours_at_most check (expires_at <= created_at + interval '8 hours')
);
create index session_by_person on tokenmill.session (person_id);
create index session_end on tokenmill.session (expires_at);

-- Values that are used once: the challenge of a sign-in, and the hash of the link that `start` prints.
create table tokenmill.challenge (
  challenge bytea primary key,
  purpose text not null,
  -- Whom the link of `start` signs in.
  person_id uuid,
  expires_at timestamptz not null,
  constraint challenge_purpose_is_known check (purpose in ('sign-in', 'start')),
  constraint only_a_link_names_its_person check ((purpose = 'start') = (person_id is not null))
);
create index challenge_end on tokenmill.challenge (expires_at);

-- Acts that wait for their person, and what became of them.
create table tokenmill.pending_act (
  nonce text primary key,
  -- Whose session it is; null while a person enrols, who has none yet.
  session_hash bytea,
  -- Where its verdict leads back to.
  batch_no bigint,
  -- The request without its proof.
  request jsonb not null,
  expires_at timestamptz not null,
  sent_at timestamptz,
  verdict jsonb,
  constraint only_a_sent_act_has_a_verdict check (verdict is null or sent_at is not null)
);
create index pending_act_end on tokenmill.pending_act (expires_at);

grant usage on schema tokenmill to tokenmill_console;
grant select, insert, update, delete on tokenmill.session, tokenmill.challenge, tokenmill.pending_act to tokenmill_console;

-- What its pages show. Nothing of a card, of a token or of a holder is among it.
grant select (batch_no, client_id, batch_id, entity_id, record_kind, token_scope, accepted_at, created_at, extent_chunks, extent_rows,
  source_name, source_sha256, limit_chunks, paused_at, cancelled_at, finished_at, revision, chunks_done, rows_done, counts,
  reasons, active_at) on tokenmill.batch to tokenmill_console;
-- How fast a batch goes.
grant select (batch_no, chunk, day, counts, completed_at) on tokenmill.receipt to tokenmill_console;
grant select (client_id, name) on tokenmill.client to tokenmill_console;
-- Who signs in, by which passkey, and who is invited. Workers check the codes of these rows before an act; the console can't.
grant select (person_id, name, roles, entities, revoked_at) on tokenmill.person to tokenmill_console;
grant select (credential_id, person_id, public_jwk, alg, rp_id, sign_count, created_at, revoked_at) on tokenmill.person_credential
  to tokenmill_console;
grant select (invite_id, lookup_hash, name, person_id, expires_at, used_at) on tokenmill.invite to tokenmill_console;
-- The number that an act's audit row got.
grant select (audit_id, seq) on tokenmill.audit to tokenmill_console;

-- What each of tokenmill's processes needs: its schema's version, the installation's id, the keys that verify answers, and
-- a heartbeat.
grant select on tokenmill.kysely_migration to tokenmill_console;
grant select (installation_id, kek_id, created_at) on tokenmill.installation to tokenmill_console;
grant select (kid, alg, public_jwk, state, statement, active_at, retired_at, mac, mac_version) on tokenmill.signing_key
  to tokenmill_console;
grant select on tokenmill.cluster to tokenmill_console;
grant select (process_id, role, kinds, features, seen_at, ended_at),
  insert (process_id, role, host, version, connections), update (seen_at, ended_at) on tokenmill.process to tokenmill_console;
alter table tokenmill.process drop constraint process_role_is_known;
alter table tokenmill.process add constraint process_role_is_known
  check (role in ('interactive', 'bulk', 'scheduler', 'gateway', 'three-ds', 'console'));
