-- Which PostgreSQL this store lies on, and the highest timeline it was ever worked on. Every promotion of a standby
-- begins a new timeline, so a server with a lower one is what was left behind by a promotion.
create table tokenmill.cluster (
  singleton boolean primary key default true,
  system_identifier text not null,
  timeline bigint not null,
  seen_at timestamptz not null default now(),
  constraint one_cluster check (singleton),
  constraint timeline_is_positive check (timeline > 0)
);
grant select on tokenmill.cluster to tokenmill_reader;
