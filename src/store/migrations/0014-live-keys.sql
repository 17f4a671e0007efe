-- What workers tell senders: which keys are live, and what every worker that may take their jobs can do.

-- When it was told last. One row: `change` grows with each change of clients and of their keys, `seq` with each list.
create table tokenmill.live_list (
  singleton boolean primary key default true,
  seq bigint not null default 0,
  change bigint not null default 1,
  told_change bigint not null default 0,
  told_at timestamptz not null default 'epoch',
  constraint there_is_one_live_list check (singleton)
);
insert into tokenmill.live_list default values;

create function tokenmill.note_key_change() returns trigger language plpgsql as $$
begin
  update tokenmill.live_list set change = change + 1;
  return null;
end
$$;
revoke execute on function tokenmill.note_key_change() from public;
create trigger note_key_change after insert or update or delete on tokenmill.client
  for each statement execute function tokenmill.note_key_change();
create trigger note_key_change after insert or update or delete on tokenmill.client_key
  for each statement execute function tokenmill.note_key_change();

-- Worker processes, each its own row, which it writes every five seconds while it lives.
create table tokenmill.live_worker (
  worker_id uuid primary key,
  kinds text[] not null,
  features text[] not null,
  seen_at timestamptz not null default now()
);

grant select on tokenmill.live_list, tokenmill.live_worker to tokenmill_reader;
