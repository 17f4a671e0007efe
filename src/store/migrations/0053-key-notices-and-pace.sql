-- Which operators' events told that a key should be replaced: once before its date, and once at the date.
create table tokenmill.key_notice (
  key text not null,
  stage text not null,
  told_at timestamptz not null default now(),
  primary key (key, stage),
  constraint key_notice_stage_is_known check (stage in ('SOON', 'OVER'))
);
grant select on tokenmill.key_notice to tokenmill_reader;

-- How long a worker's recent interactive jobs on cards took, by which a re-encryption goes slower.
alter table tokenmill.process add column work_ms integer;
grant select (work_ms) on tokenmill.process to tokenmill_reader;
