-- What a worker does beyond its rights on tables (src/store/worker-rights.ts): each function runs as the database's owner,
-- so it does one thing only, checks its arguments, and finds nothing by a search path.
grant usage on schema tokenmill to tokenmill_worker;

-- Whether the database's owner has connected, or whoever may act as the owner: the owner isn't held to what holds for
-- workers.
create function tokenmill.is_owner() returns boolean language sql stable
set search_path = pg_catalog, pg_temp as $$
  select pg_has_role(session_user, relowner, 'MEMBER') from pg_class where oid = 'tokenmill.audit'::regclass
$$;

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

-- Makes the partition of the week that begins on this Monday, unless it is there.
create function tokenmill.make_week(parent text, monday date) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare name text := parent || '_' || to_char(monday, 'YYYYMMDD');
begin
  if parent not in ('receipt', 'outbox') or extract(isodow from monday) <> 1 then
    raise exception 'no week of a partitioned table: %, %', parent, monday using errcode = 'invalid_parameter_value';
  end if;
  if to_regclass('tokenmill.' || name) is null then
    execute format('create table tokenmill.%I partition of tokenmill.%I for values from (%L) to (%L)',
      name, parent, to_char(monday, 'YYYY-MM-DD'), to_char(monday + 7, 'YYYY-MM-DD'));
  end if;
end
$$;

-- Drops the partition of a week: for a worker only a week that ended six days ago (seven, and a margin for its clock).
create function tokenmill.drop_week(parent text, monday date) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  if parent not in ('receipt', 'outbox') or extract(isodow from monday) <> 1 then
    raise exception 'no week of a partitioned table: %, %', parent, monday using errcode = 'invalid_parameter_value';
  end if;
  if (now() at time zone 'UTC')::date < monday + 13 and not tokenmill.is_owner() then
    raise exception 'the week of % is not over for six days', monday using errcode = 'insufficient_privilege';
  end if;
  execute format('drop table if exists tokenmill.%I', parent || '_' || to_char(monday, 'YYYYMMDD'));
end
$$;

-- Makes the partition of the ledger for the month that begins on this day, unless it is there. It is made as a table and
-- then attached, so that transactions on other months don't wait.
create function tokenmill.make_month(month date) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare name text := 'transaction_' || to_char(month, 'YYYYMM');
begin
  if extract(day from month) <> 1 then
    raise exception 'no first day of a month: %', month using errcode = 'invalid_parameter_value';
  end if;
  if to_regclass('tokenmill.' || name) is null then
    execute format('create table tokenmill.%I (like tokenmill.transaction including defaults including constraints)', name);
  end if;
  if not exists (select from pg_inherits where inhrelid = ('tokenmill.' || name)::regclass) then
    execute format('alter table tokenmill.transaction attach partition tokenmill.%I for values from (%L) to (%L)',
      name, to_char(month, 'YYYY-MM-DD') || ' 00:00+00', to_char(month + interval '1 month', 'YYYY-MM-DD') || ' 00:00+00');
  end if;
end
$$;

-- How far the slowest replica is behind, in ms; null without one. The server shows it to the owner, who may have the role
-- pg_read_all_stats.
create function tokenmill.replica_lag_ms() returns bigint language sql security definer
set search_path = pg_catalog, pg_temp as $$
  select (extract(epoch from max(replay_lag)) * 1000)::bigint from pg_stat_replication
$$;

revoke execute on function tokenmill.is_owner(),
  tokenmill.number_audit(bigint[], bigint[], bytea[], bytea[], smallint[]), tokenmill.prune_audit(bigint),
  tokenmill.make_week(text, date), tokenmill.drop_week(text, date), tokenmill.make_month(date), tokenmill.replica_lag_ms()
  from public;
grant execute on function
  tokenmill.number_audit(bigint[], bigint[], bytea[], bytea[], smallint[]), tokenmill.prune_audit(bigint),
  tokenmill.make_week(text, date), tokenmill.drop_week(text, date), tokenmill.make_month(date), tokenmill.replica_lag_ms()
  to tokenmill_worker;
grant execute on function tokenmill.short_fingerprint(bytea) to tokenmill_worker;
