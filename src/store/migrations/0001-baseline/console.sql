-- The console and its people.

-- People, their passkeys and their invites. Only acts write them: a worker's, after it checked who acts, and the commands of
-- an operator. A row that grants a right has a message authentication code, as a client's row has: whoever owns the database
-- can't make a person. A revoked or used row has none.
create table tokenmill.person (
  person_id uuid primary key,
  name text not null,
  roles text[] not null,
  -- The entities whose rows the person sees; null: all.
  entities uuid[],
  -- Of the embedded engine only: acts without a passkey.
  is_local boolean not null default false,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  mac bytea,
  mac_version smallint,
  constraint person_has_known_roles check (roles <@ array['VIEWER', 'OPERATOR', 'ADMIN'] and cardinality(roles) > 0),
  constraint person_has_no_empty_list_of_entities check (cardinality(entities) > 0),
  constraint person_mac_is_whole check ((mac is null) = (mac_version is null))
);

-- A revoked person's name may be given again.
create unique index person_name_stands_once on tokenmill.person (name) where revoked_at is null;

create index person_by_end on tokenmill.person (revoked_at desc, person_id) where revoked_at is not null;

create table tokenmill.person_credential (
  -- As the authenticator gave it, base64url.
  credential_id text primary key,
  person_id uuid not null references tokenmill.person,
  public_jwk jsonb not null,
  alg text not null,
  -- The domain to which the passkey is bound.
  rp_id text not null,
  -- What a use of it changes; the code doesn't cover these two.
  sign_count bigint not null,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  mac bytea,
  mac_version smallint,
  constraint credential_algorithm_is_known check (alg in ('ES256', 'EdDSA', 'RS256')),
  constraint credential_mac_is_whole check ((mac is null) = (mac_version is null))
);

create index credential_by_person on tokenmill.person_credential (person_id);

create table tokenmill.invite (
  invite_id uuid primary key,
  -- Both are derived from the secret in the link, which nobody keeps: SHA-256 of the value by which the console finds the
  -- invite, and the public half of the key that signs the enrolment.
  lookup_hash bytea not null,
  public_key bytea not null,
  name text not null,
  roles text[] not null,
  entities uuid[],
  -- The person who gets a further passkey; null: a new person.
  person_id uuid references tokenmill.person,
  invited_by text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  mac bytea,
  mac_version smallint,
  -- The identity that the person of an invite gets with the passkey.
  issuer text,
  subject text,
  constraint invite_lookup_is_hashed check (length(lookup_hash) = 32),
  constraint invite_lookup_stands_once unique (lookup_hash),
  constraint invite_key_is_ed25519 check (length(public_key) = 32),
  constraint invite_has_known_roles check (roles <@ array['VIEWER', 'OPERATOR', 'ADMIN'] and cardinality(roles) > 0),
  constraint invite_mac_is_whole check ((mac is null) = (mac_version is null)),
  constraint invite_identity_is_whole check ((issuer is null) = (subject is null))
);

create index invite_open on tokenmill.invite (expires_at, invite_id) where used_at is null;

-- Acts that were done or refused after their proof was verified: none counts twice. Retention removes them after an hour.
create table tokenmill.act_nonce (
  nonce text primary key,
  used_at timestamptz not null default now(),
  receipt_id uuid not null,
  -- The act's row in the audit; null: there is none.
  audit_id bigint,
  constraint act_has_one_receipt unique (receipt_id)
);

create index act_nonce_age on tokenmill.act_nonce (used_at);

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
  -- The passkey with which a session began: when that is revoked, the session is over, whoever revoked it and when. Null where there
  -- was none (the link of `start`). No foreign key: the console writes its sessions alone.
  credential_id text,
  -- The identity with which a session began: when it is disconnected, the session is over.
  identity_id uuid,
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

-- Sign-in by OpenID: which account at a provider is whose. Only acts write it: a worker's and the commands of an operator. A row
-- has a message authentication code, as a passkey's has. An identity signs in; it signs no act.
create table tokenmill.person_identity (
  identity_id uuid primary key,
  person_id uuid not null references tokenmill.person,
  -- The provider and the account there, exactly as the provider writes them in an ID token.
  issuer text not null,
  subject text not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  mac bytea,
  mac_version smallint,
  constraint identity_issuer_is_a_url check (issuer ~ '^https?://' and length(issuer) <= 300),
  constraint identity_subject_is_short check (length(subject) between 1 and 255),
  constraint identity_mac_is_whole check ((mac is null) = (mac_version is null))
);

-- One account is one person's. One that was disconnected may be connected again.
create unique index identity_is_one_persons on tokenmill.person_identity (issuer, subject) where revoked_at is null;

create index identity_by_person on tokenmill.person_identity (person_id);

-- A person who is on the way to a provider and back. The console writes it, and uses each row once.
create table tokenmill.openid_flow (
  -- SHA-256 of the state, which the provider hands back.
  state_hash bytea primary key,
  -- SHA-256 of the cookie of the browser that began.
  browser_hash bytea not null,
  nonce text not null,
  -- Of PKCE (RFC 7636).
  verifier text not null,
  purpose text not null,
  -- The session that connects an identity; null at a sign-in.
  session_hash bytea,
  -- The page to which a sign-in leads.
  destination text not null,
  -- What the provider said, for the person to confirm.
  subject text,
  expires_at timestamptz not null,
  used_at timestamptz,
  constraint flow_hashes_are_sha256 check (length(state_hash) = 32 and length(browser_hash) = 32),
  constraint flow_purpose_is_known check (purpose in ('sign-in', 'connect')),
  constraint only_a_session_connects check ((purpose = 'connect') = (session_hash is not null)),
  constraint only_a_used_flow_has_a_subject check (subject is null or (used_at is not null and purpose = 'connect'))
);

create index openid_flow_end on tokenmill.openid_flow (expires_at);

create index openid_flow_by_session on tokenmill.openid_flow (session_hash) where session_hash is not null;

-- What the page Installation shows, and wall displays.

-- A wall display: a link that shows figures of the page Now on a screen in a room, until it is revoked. Commands write it. It has
-- no message authentication code: whoever reads the row is the console, which holds no key and couldn't check one, and whoever can
-- write the row can read all that a display shows.
create table tokenmill.display (
  display_id uuid primary key,
  -- For those who list and revoke it; the display doesn't show it.
  name text not null,
  -- The entities about whose batches it tells; null: the whole installation.
  entities uuid[],
  -- SHA-256 of the value in the link, which nobody keeps but the display's browser, as its cookie.
  link_hash bytea not null,
  made_by text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  revoked_at timestamptz,
  constraint display_link_is_hashed check (length(link_hash) = 32),
  constraint display_link_stands_once unique (link_hash),
  constraint display_has_no_empty_list_of_entities check (cardinality(entities) > 0),
  -- No browser keeps a cookie for longer.
  constraint display_lasts_400_days_at_most check (expires_at <= created_at + interval '400 days')
);

-- A revoked display's name may be given again.
create unique index display_name_stands_once on tokenmill.display (name) where revoked_at is null;

-- What a person's act is to do to copies in the failed set. The copies are in the queues, outside of every transaction here: so
-- the rows are written in the transaction that checks the act and writes its audit rows, and workers do them afterwards.
create table tokenmill.failed_act (
  act_no bigint generated always as identity primary key,
  -- Of the act; all copies of one selection have the same.
  nonce text not null,
  action text not null,
  kind text not null,
  copy_id text not null,
  -- The row in the audit that was written before; null for a copy that can't be sent again, which stays.
  audit_id bigint,
  begun_at timestamptz not null default now(),
  -- A worker that begins moves it ahead, and if the worker dies another one begins then.
  due_at timestamptz not null default now(),
  tries smallint not null default 0,
  -- Null: not done yet. Else `done`, or why not.
  outcome text,
  constraint failed_act_stands_once unique (nonce, copy_id),
  constraint failed_act_is_known check (action in ('failed.retry', 'failed.discard')),
  constraint only_an_ended_one_is_not_in_the_audit check (audit_id is not null or outcome is not null)
);

create index failed_act_open on tokenmill.failed_act (act_no) where outcome is null;

create index failed_act_begun on tokenmill.failed_act (begun_at);

-- As see_gateway and leave_gateway. It names no keys: the console has none.
create function tokenmill.see_console(id uuid, own_host text, own_version text, most integer)
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
  select tokenmill.see_process('console', id, own_host, own_version, most, '{}')
$$;
revoke execute on function tokenmill.see_console(uuid, text, text, integer) from public;

create function tokenmill.leave_console(id uuid) returns void language sql security definer
set search_path = pg_catalog, pg_temp as $$
  update tokenmill.process set ended_at = now() where process_id = id and role = 'console'
$$;
revoke execute on function tokenmill.leave_console(uuid) from public;

-- The rows of a chunk that were REJECTED or FAILED: place in the chunk (from 1), line of the source, outcome and reason. A
-- receipt's outcomes also hold references, token ids and a part of each card's fingerprint, so the console can't read them.
create function tokenmill.refused_rows(of_batch bigint, since date, of_chunk integer, after integer, most integer)
returns table (place integer, line bigint, outcome smallint, reason text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select row.place::integer, (row.packed->>0)::bigint, (row.packed->>1)::smallint, nullif(row.packed->>4, '0')
  from tokenmill.receipt as r cross join lateral jsonb_array_elements(r.outcomes::jsonb) with ordinality as row(packed, place)
  where r.batch_no = of_batch and r.day >= since and r.chunk = of_chunk and r.outcomes is not null
    and row.packed->>1 in ('4', '5') and row.place > after
  order by row.place limit least(most, 1000)
$$;
revoke execute on function tokenmill.refused_rows(bigint, date, integer, integer, integer) from public;

-- The text of an answer without a receipt, or of an event, may hold the first and last digits of a card. The console sees of
-- an answer which job it is about and why that was refused, and nothing else of the text.
create view tokenmill.told_reason with (security_barrier) as
select outbox_id, receipt_id, body::json->>'jti' as jti, (body::json->>'code')::int as code, body::json#>'{error,details}' as details
from tokenmill.outbox where body is not null and result_id is distinct from receipt_id;
grant select on tokenmill.told_reason to tokenmill_console;

grant usage on schema tokenmill to tokenmill_console;

grant execute on function tokenmill.refused_rows(bigint, date, integer, integer, integer) to tokenmill_console;

grant select (person_id, name, roles, entities, is_local, created_at, revoked_at, mac, mac_version) on
  tokenmill.person to tokenmill_reader;

grant select on tokenmill.person_credential to tokenmill_reader;

grant select (invite_id, name, roles, entities, person_id, invited_by, created_at, expires_at, used_at) on
  tokenmill.invite to tokenmill_reader;

grant select, insert, update, delete on tokenmill.session to tokenmill_console;

grant select, insert, update, delete on tokenmill.challenge to tokenmill_console;

grant select, insert, update, delete on tokenmill.pending_act to tokenmill_console;

grant select (batch_no, client_id, batch_id, record_kind, token_scope, accepted_at, created_at, cancelled_at,
  extent_chunks, extent_rows, source_name, source_sha256, limit_chunks, paused_at, finished_at, revision, chunks_done,
  rows_done, counts, reasons, active_at, entity_id) on tokenmill.batch to tokenmill_console;

grant select (receipt_id, day, client_id, iss, kind, jti, reply_to, reference, status, code, outcome, refusal,
  token_id, batch_no, chunk, counts, revision, attempt, accepted_at, completed_at, reversal, entity_id) on
  tokenmill.receipt to tokenmill_console;

grant select (client_id, name, entities, roles, alg, system, created_at, revoked_at, names) on tokenmill.client to
  tokenmill_console;

grant select (person_id, name, roles, entities, is_local, created_at, revoked_at) on tokenmill.person to
  tokenmill_console;

grant select (credential_id, person_id, public_jwk, alg, rp_id, sign_count, last_used_at, created_at, revoked_at) on
  tokenmill.person_credential to tokenmill_console;

grant select (invite_id, lookup_hash, name, roles, entities, person_id, invited_by, created_at, expires_at, used_at,
  issuer, subject) on tokenmill.invite to tokenmill_console;

grant select (audit_id, at, actor, action, subject, detail, host, outcome, seq, hash, entity_id) on tokenmill.audit to
  tokenmill_console;

grant select on tokenmill.kysely_migration to tokenmill_console;

grant select on tokenmill.schema_range to tokenmill_console;

grant select (installation_id, kek_id, created_at) on tokenmill.installation to tokenmill_console;

grant select (kid, alg, public_jwk, state, statement, active_at, retired_at, mac, mac_version) on
  tokenmill.signing_key to tokenmill_console;

grant select on tokenmill.cluster to tokenmill_console;

grant select (process_id, role, host, version, kinds, features, connections, started_at, seen_at, ended_at, keys, work, load, login)
  on tokenmill.process to tokenmill_console;

grant execute on function tokenmill.see_console(uuid, text, text, integer) to tokenmill_console;

grant execute on function tokenmill.leave_console(uuid) to tokenmill_console;

grant select on tokenmill.work_minute to tokenmill_console;

grant select on tokenmill.watch_check to tokenmill_console;

grant select on tokenmill.watch_queue to tokenmill_console;

grant select on tokenmill.watch_minute to tokenmill_console;

grant select on tokenmill.batch_sample to tokenmill_console;

grant select (receipt_id, day) on tokenmill.receipt_key to tokenmill_console;

grant select (outbox_id, client_id, reply_to, result_id, receipt_id, revision, state, created_at) on tokenmill.outbox
  to tokenmill_console;

grant select (receipt_id, client_id, entity_id, kind, job_id, state, accepted_at, expires_at, completed_at) on
  tokenmill.operation to tokenmill_console;

grant select (receipt_id, action, state, refusal, reversal, created_at, updated_at) on tokenmill.scheme_intent to
  tokenmill_console;

grant select (token_id, token_scope, status, suspended_reason, token_type, created_at, updated_at, last_receipt,
  third_party_type) on tokenmill.token to tokenmill_console;

grant select (token_scope, entity_id, par, network_tokens, requestor, bin_digits, created_at, auto_provision,
  keep_billing) on tokenmill.scope to tokenmill_console;

grant select (nonce, outcome) on tokenmill.failed_act to tokenmill_console;

grant select, insert, update, delete on tokenmill.openid_flow to tokenmill_console;

grant select (identity_id, person_id, issuer, subject, created_at, revoked_at) on tokenmill.person_identity to
  tokenmill_console;

grant select (identity_id, person_id, issuer, created_at, revoked_at) on tokenmill.person_identity to
  tokenmill_reader;

grant select (seq, segment, cut_seq, unsent_from, sent_at, away_since, place, is_outside) on
  tokenmill.audit_chain to tokenmill_console;

grant select (schedule_id, kind, client_id, report_type, entity_id, mime_type, parameters, time, zone, created_at,
  removed_at, paused_at, resumed_at) on tokenmill.schedule to tokenmill_console;

grant select (schedule_id, business_date, entity_id, receipt_id, state, due_at, next_at, attempts, faults, report_uid,
  tokens, reason, late_at, created_at, ended_at) on tokenmill.schedule_run to tokenmill_console;

grant select (report_uid, mime_type, report_entity_uid, file_name, created_on, modified_on, status, lines, bytes,
  sha256, storage_key, failure_reason) on tokenmill.report to tokenmill_console;

grant select on tokenmill.display to tokenmill_console;

grant select (display_id, name, entities, made_by, created_at, expires_at, revoked_at) on tokenmill.display to
  tokenmill_reader;

grant select (client_id, kid, alg, state, valid_until, created_at) on tokenmill.client_key to tokenmill_console;

grant select (purpose, version, state, created_at, kek_id, seals, activated_at, retired_at, compromised_at,
  compromise_ended_at) on tokenmill.data_key to tokenmill_console;

grant select (kek_id, state, created_at, retired_at) on tokenmill.kek to tokenmill_console;

grant select (kid, role, created_at, forgotten_at) on tokenmill.role_key to tokenmill_console;

grant select (kid, purpose, version) on tokenmill.shared_key to tokenmill_console;

grant select (alias, entity_id, type, state, created_at, retired_at, destroyed_at, key_id, number, last_used_at) on
  tokenmill.capture_key to tokenmill_console;

grant select (purpose, version, state, pass_scanned, pass_found, pass_done, rows_expected, started_at, clean_at) on
  tokenmill.reseal to tokenmill_console;

grant select (provider, process, given, granted, rate, slowed_by, slowed_at, renewed_at) on tokenmill.scheme_rate to
  tokenmill_console;
