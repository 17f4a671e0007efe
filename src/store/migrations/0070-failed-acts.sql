-- What a person's act is to do to copies in the failed set. The copies are in the queues, outside of every transaction here: so
-- the rows are written in the transaction that checks the act and writes its audit rows, and workers do them afterwards.
create table tokenmill.failed_act (
  act_no bigint generated always as identity primary key,
  -- Of the act; all copies of one selection have the same.
  nonce text not null,
  action text not null,
  kind text not null,
  copy_id text not null,
  -- The row in the audit that was written before; null for a copy that can't be sent again, which stays.
  audit_id bigint,
  begun_at timestamptz not null default now(),
  -- A worker that begins moves it ahead, and if the worker dies another one begins then.
  due_at timestamptz not null default now(),
  tries smallint not null default 0,
  -- Null: not done yet. Else `done`, or why not.
  outcome text,
  constraint failed_act_stands_once unique (nonce, copy_id),
  constraint failed_act_is_known check (action in ('failed.retry', 'failed.discard')),
  constraint only_an_ended_one_is_not_in_the_audit check (audit_id is not null or outcome is not null)
);
create index failed_act_open on tokenmill.failed_act (act_no) where outcome is null;
create index failed_act_begun on tokenmill.failed_act (begun_at);

-- How far an act is, for the person who sent it.
grant select (nonce, outcome) on tokenmill.failed_act to tokenmill_console;
-- Whose copies a person may see: those of clients that act for the person's entities only.
grant select (entities, system, revoked_at) on tokenmill.client to tokenmill_console;
