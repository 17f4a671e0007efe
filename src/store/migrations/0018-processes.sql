-- Every process of a long-running role, each its own row, which it writes every ten seconds while it lives. Workers say
-- here, too, which kinds they take and which features they understand: the table replaces that of live workers.
drop table tokenmill.live_worker;

create table tokenmill.process (
  process_id uuid primary key,
  role text not null,
  host text not null,
  version text not null,
  kinds text[] not null default '{}',
  features text[] not null default '{}',
  -- The most connections to the store that it opens.
  connections integer not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  -- It was told to end, and did.
  ended_at timestamptz,
  constraint process_role_is_known check (role in ('interactive', 'bulk', 'scheduler', 'gateway', 'three-ds')),
  constraint only_workers_take_kinds check (role in ('interactive', 'bulk') or (kinds = '{}' and features = '{}'))
);

grant select on tokenmill.process to tokenmill_reader;
-- A gateway can't pass for a worker: it can write neither kinds nor features.
grant insert (process_id, role, host, version, connections), update (seen_at, ended_at) on tokenmill.process
  to tokenmill_gateway;
