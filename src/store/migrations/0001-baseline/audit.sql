-- The chain of the audit.

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
  -- Where the newest segment went, as the worker says that sent it: a URL without its user and query, or the worker's host if no
  -- AUDIT_URL was set. Null: none was sent yet.
  place text,
  is_outside boolean,
  constraint only_one_chain check (only_row),
  constraint cut_is_within_chain check (cut_seq <= seq)
);

insert into tokenmill.audit_chain default values;

-- Gives audit rows their numbers, once: a row that has a number keeps it. Returns how many rows got one.
create function tokenmill.number_audit(ids bigint[], seqs bigint[], hashes bytea[], macs bytea[], versions smallint[])
returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare numbered bigint;
begin
  update tokenmill.audit as a set seq = v.seq, hash = v.hash, mac = v.mac, key_version = v.key_version
  from unnest(ids, seqs, hashes, macs, versions) as v(audit_id, seq, hash, mac, key_version)
  where a.audit_id = v.audit_id and a.seq is null;
  get diagnostics numbered = row_count;
  return numbered;
end
$$;
revoke execute on function tokenmill.number_audit(bigint[], bigint[], bytea[], bytea[], smallint[]) from public;
grant execute on function tokenmill.number_audit(bigint[], bigint[], bytea[], bytea[], smallint[]) to tokenmill_worker;

-- Removes audit rows up to a number: for a worker only rows that are older than a year.
create function tokenmill.prune_audit(up_to bigint) returns bigint language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare pruned bigint;
begin
  delete from tokenmill.audit where seq <= up_to and (at < now() - interval '366 days' or tokenmill.is_owner());
  get diagnostics pruned = row_count;
  return pruned;
end
$$;
revoke execute on function tokenmill.prune_audit(bigint) from public;
grant execute on function tokenmill.prune_audit(bigint) to tokenmill_worker;
