-- A schedule can be paused. What it misses meanwhile is due from the moment at which it is resumed.
alter table tokenmill.schedule add column paused_at timestamptz, add column resumed_at timestamptz,
  -- Tokens past their date are always suspended.
  add constraint only_reports_are_paused check (kind = 'report' or num_nonnulls(paused_at, resumed_at) = 0);

-- Runs, newest first: all, those of an entity, and those that have not ended well.
drop index tokenmill.schedule_run_by_date;
create index schedule_run_newest on tokenmill.schedule_run (business_date, schedule_id, entity_id);
create index schedule_run_of_entity on tokenmill.schedule_run (entity_id, business_date, schedule_id);
create index schedule_run_in_state on tokenmill.schedule_run (state, business_date, schedule_id, entity_id)
  where state <> 'SUCCEEDED';
create index schedule_run_failed on tokenmill.schedule_run (ended_at) where state = 'FAILED';

-- What the console shows of them; of a report no sums and no parameters. It shows those of a schedule, without digits that could be a card number.
grant select (schedule_id, kind, client_id, report_type, entity_id, mime_type, parameters, time, zone, created_at, removed_at,
  paused_at, resumed_at) on tokenmill.schedule to tokenmill_console;
grant select (schedule_id, business_date, entity_id, receipt_id, state, due_at, next_at, attempts, faults, report_uid, tokens,
  reason, late_at, created_at, ended_at) on tokenmill.schedule_run to tokenmill_console;
grant select (report_uid, report_entity_uid, mime_type, file_name, created_on, modified_on, status, lines, bytes, sha256,
  storage_key, failure_reason) on tokenmill.report to tokenmill_console;
