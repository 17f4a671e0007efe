-- A status that changes leaves the indexes of a token's row alone, so that PostgreSQL writes the new version of the row onto
-- the page of the old one and touches no index (a HOT update). Therefore the index of the nightly sweep doesn't name the
-- status. So that it holds no token for ever, a trigger notes which tokens need no sweep any more: also for workers of
-- release 0.3, which don't know the column. src/store/large-indexes.ts builds the index.
create function tokenmill.note_expiry() returns trigger language plpgsql as $$
begin
  new.expiry_is_done := case when new.suspended_reason = 'EXPIRED' or new.status = 'DELETED' then true end;
  return new;
end
$$;
revoke execute on function tokenmill.note_expiry() from public;

-- Room for the new version of a row on its own page: new pages only.
alter table tokenmill.sequence_mark set (fillfactor = 90);

-- PostgreSQL's own share of a fifth is twenty million dead rows of a hundred million.
alter table tokenmill.token set (autovacuum_vacuum_scale_factor = 0.02);
alter table tokenmill.card set (autovacuum_vacuum_scale_factor = 0.02);
alter table tokenmill.sequence_mark set (autovacuum_vacuum_scale_factor = 0.02);
alter table tokenmill.source_reference set (autovacuum_vacuum_scale_factor = 0.02);
alter table tokenmill.scheme_token set (autovacuum_vacuum_scale_factor = 0.02);
alter table tokenmill.before_image set (autovacuum_vacuum_scale_factor = 0.02);

-- Each row of the outbox dies once, when it is published. The sweep for unpublished rows passes the dead ones.
do $$
declare week regclass;
begin
  for week in select inhrelid from pg_inherits where inhparent = 'tokenmill.outbox'::regclass loop
    execute format('alter table %s set (autovacuum_vacuum_scale_factor = 0.02)', week);
  end loop;
end
$$;

-- As before, and a week of the outbox gets the same settings.
create or replace function tokenmill.make_week(parent text, monday date) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare name text := parent || '_' || to_char(monday, 'YYYYMMDD');
begin
  if parent not in ('receipt', 'outbox') or extract(isodow from monday) <> 1 then
    raise exception 'no week of a partitioned table: %, %', parent, monday using errcode = 'invalid_parameter_value';
  end if;
  if to_regclass('tokenmill.' || name) is null then
    execute format('create table tokenmill.%I partition of tokenmill.%I for values from (%L) to (%L)',
      name, parent, to_char(monday, 'YYYY-MM-DD'), to_char(monday + 7, 'YYYY-MM-DD'));
    if parent = 'outbox' then
      execute format('alter table tokenmill.%I set (autovacuum_vacuum_scale_factor = 0.02)', name);
    end if;
  end if;
end
$$;

-- Last: nobody reads a token from here to the end of the transaction.
alter table tokenmill.token add column expiry_is_done boolean;
create trigger token_notes_its_expiry before update on tokenmill.token for each row
  when (
    new.token_expiry_date is not null
    and (new.status = 'DELETED' or new.suspended_reason is not distinct from 'EXPIRED')
      is distinct from coalesce(old.expiry_is_done, false)
  )
  execute function tokenmill.note_expiry();
