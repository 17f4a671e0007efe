-- How the rows of the audit are numbered and pruned.

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
