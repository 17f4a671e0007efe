-- The audit as a chain: acts insert plain rows, and one process at a time gives each row its number, its hash (SHA-256
-- over the hash of the row before and this row's text) and a MAC under the data key `audit`.
alter table tokenmill.audit
  add column host text,
  add column outcome text not null default 'done',
  add column seq bigint,
  add column hash bytea,
  add column mac bytea,
  add column key_version smallint,
  add constraint audit_outcome_is_known check (outcome in ('done', 'refused', 'failed')),
  add constraint audit_row_has_one_number unique (seq),
  add constraint audit_number_has_its_hash check (
    (seq is null and hash is null and mac is null and key_version is null)
    or (seq > 0 and octet_length(hash) = 32 and octet_length(mac) = 32 and key_version > 0)
  );
create index audit_without_number on tokenmill.audit (audit_id) where seq is null;

-- The gateway records acts, but numbers no row.
revoke insert on tokenmill.audit from tokenmill_gateway;
grant insert (actor, action, subject, detail, host, outcome), select (audit_id) on tokenmill.audit to tokenmill_gateway;

-- One row. `seq` and `hash`: the head of the chain. A segment is cut (its head is signed and kept here) before it is
-- sent, so that it is sent again with the same bytes after a crash.
create table tokenmill.audit_chain (
  only_row boolean primary key default true,
  seq bigint not null default 0,
  hash bytea not null default decode(repeat('00', 32), 'hex'),
  -- Which process numbers the rows and sends the segments, and until when it has that right.
  holder uuid,
  held_until timestamptz,
  -- The last segment that was cut: its number, the last row in it with its hash, and its signed head.
  segment bigint not null default 0,
  cut_seq bigint not null default 0,
  cut_hash bytea not null default decode(repeat('00', 32), 'hex'),
  cut_at timestamptz not null default now(),
  cut_head text,
  -- The first row of a segment that was cut and not sent yet; null if every segment was sent.
  unsent_from bigint,
  sent_at timestamptz not null default now(),
  -- Since when the outside place takes no segments.
  away_since timestamptz,
  -- Somebody waits for a row to be outside: the next segment is cut at once.
  wanted boolean not null default false,
  constraint only_one_chain check (only_row),
  constraint cut_is_within_chain check (cut_seq <= seq)
);
insert into tokenmill.audit_chain default values;
