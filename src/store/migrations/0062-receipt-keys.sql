-- Where each receipt is. A receipt's week isn't known from its id, so a look-up by id alone searches the index of every
-- week. Here one search suffices. A row is also the claim on the id: the primary key of the receipts holds within a week
-- only.
create table tokenmill.receipt_key (
  receipt_id uuid primary key,
  -- The day of the receipt, which tells its week. Null: the job was answered, and left no receipt.
  day date,
  -- Of the last answer before the receipt, or of the receipt's first. The receipt's own row counts from there.
  revision integer not null,
  -- The day of the last answer. Null: there is a receipt.
  answered_on date,
  constraint receipt_key_has_one_day check ((day is null) <> (answered_on is null))
);
alter table tokenmill.receipt_key set (autovacuum_vacuum_scale_factor = 0.02);
-- Retention finds old answers by it. Keys of receipts go with the receipts.
create index receipt_key_of_answers on tokenmill.receipt_key (answered_on) where day is null;

-- How far the keys of earlier receipts are written. New receipts have theirs from the beginning.
create table tokenmill.receipt_fill (
  one boolean primary key default true,
  is_filled boolean not null,
  -- The Monday of the week that is being filled, and its last receipt that has its key.
  week date not null,
  filled_to uuid not null default '00000000-0000-0000-0000-000000000000',
  -- The last row of the outbox whose answer is counted.
  answered_to bigint not null default 0,
  constraint there_is_one_receipt_fill check (one)
);
insert into tokenmill.receipt_fill (is_filled, week)
select not exists(select from tokenmill.installation),
  (select coalesce(min(to_date(right(relname, 8), 'YYYYMMDD')), current_date)
  from pg_inherits join pg_class on pg_class.oid = inhrelid where inhparent = 'tokenmill.receipt'::regclass);

grant select on tokenmill.receipt_key, tokenmill.receipt_fill to tokenmill_reader;

-- What follows is for the time beside workers of release 0.3, which don't know the keys: what they write gets its key by
-- triggers. What this release writes has its key already.
create function tokenmill.follow_receipt() returns trigger language plpgsql as $$
begin
  -- This release has written the key before.
  if exists (
    select from tokenmill.receipt_fill as f join tokenmill.receipt_key as k on k.receipt_id = new.receipt_id
    where f.is_filled and k.day = new.day
  ) then
    return new;
  end if;
  -- Until the keys are filled, one that is missing proves nothing.
  if not (select is_filled from tokenmill.receipt_fill) then
    if exists (select from tokenmill.receipt where receipt_id = new.receipt_id) then
      raise exception 'the receipt was written before' using errcode = 'serialization_failure';
    end if;
    new.revision := greatest(
      new.revision, (select max(revision) + 1 from tokenmill.outbox where receipt_id = new.receipt_id)
    );
  end if;
  -- A key of another day is left of a receipt that is gone: the writer has searched every week.
  insert into tokenmill.receipt_key as k (receipt_id, day, revision) values (new.receipt_id, new.day, new.revision)
  on conflict (receipt_id) do update set day = excluded.day, revision = excluded.revision, answered_on = null
  where k.day is distinct from excluded.day;
  return new;
end
$$;

create function tokenmill.follow_answer() returns trigger language plpgsql as $$
begin
  insert into tokenmill.receipt_key as k (receipt_id, revision, answered_on)
  values (new.receipt_id, new.revision, new.day)
  on conflict (receipt_id) do update set revision = excluded.revision, answered_on = excluded.answered_on
  where k.day is null and k.revision < excluded.revision;
  return null;
end
$$;

-- After that time: a worker of release 0.3 that was started by mistake writes no receipt that nobody would find.
create function tokenmill.refuse_receipt_without_key() returns trigger language plpgsql as $$
begin
  if not exists (select from tokenmill.receipt_key where receipt_id = new.receipt_id and day = new.day) then
    raise exception 'a receipt has no key: its writer is of release 0.3'
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  return new;
end
$$;

-- Ends that time, unless keys are still missing.
create function tokenmill.follow_receipts_no_more() returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  if (select is_filled from tokenmill.receipt_fill)
    and exists (select from pg_trigger where tgname = 'receipt_has_its_key' and tgrelid = 'tokenmill.receipt'::regclass)
  then
    drop trigger receipt_has_its_key on tokenmill.receipt;
    drop trigger answer_is_counted on tokenmill.outbox;
    create trigger receipt_needs_its_key before insert on tokenmill.receipt for each row
      execute function tokenmill.refuse_receipt_without_key();
  end if;
end
$$;

revoke execute on function tokenmill.follow_receipt(), tokenmill.follow_answer(), tokenmill.refuse_receipt_without_key(),
  tokenmill.follow_receipts_no_more() from public;

-- Last: nobody writes a receipt from here to the end of the transaction.
do $$
begin
  if not (select is_filled from tokenmill.receipt_fill) then
    create trigger receipt_has_its_key before insert on tokenmill.receipt for each row
      execute function tokenmill.follow_receipt();
    create trigger answer_is_counted after insert on tokenmill.outbox for each row
      when (new.body is not null and new.revision > 0 and new.result_id is distinct from new.receipt_id)
      execute function tokenmill.follow_answer();
  end if;
end
$$;
