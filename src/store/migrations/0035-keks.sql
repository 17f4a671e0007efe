-- The key-encryption keys (KEKs) of the installation: the current one, former ones that backups may need, and one that is
-- to become the current one. No KEK is here, and nothing that says where one is.
create table tokenmill.kek (
  kek_id text primary key,
  state text not null,
  -- Bytes that the KEK has wrapped. A host that unwraps them has the KEK.
  probe bytea not null,
  created_at timestamptz not null default now(),
  -- Since when it is not the current one any more.
  retired_at timestamptz,
  constraint kek_state_is_known check (state in ('PENDING', 'ACTIVE', 'RETIRED')),
  constraint retired_kek_has_its_time check ((state = 'RETIRED') = (retired_at is not null))
);
create unique index one_kek_is_active on tokenmill.kek (state) where state = 'ACTIVE';

grant select (kek_id, state, created_at, retired_at) on tokenmill.kek to tokenmill_reader;

-- Refuses a data key that another KEK than the current one has wrapped. The row's lock makes it wait for a rotation that
-- is about to commit: a process that read the former KEK's id can't leave a key behind that nobody wraps anew.
create function tokenmill.check_current_kek() returns trigger language plpgsql as $$
begin
  perform 1 from tokenmill.installation where kek_id = new.kek_id for share;
  if not found and exists (select from tokenmill.installation) then
    raise exception 'another key-encryption key is current' using errcode = 'serialization_failure';
  end if;
  return new;
end
$$;
revoke execute on function tokenmill.check_current_kek() from public;
create trigger data_key_is_wrapped_by_current_kek before insert or update of kek_id on tokenmill.data_key
  for each row execute function tokenmill.check_current_kek();
