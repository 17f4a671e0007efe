-- Reports. `report_uid` is the receipt id of the job that makes the report: known before the job runs, the same for
-- each of its attempts. The file lies in the report store under `storage_key`; a row without one has no file (yet, or
-- no more).
create table tokenmill.report (
  report_uid uuid primary key,
  report_type text not null,
  report_parameter jsonb not null,
  mime_type text not null,
  report_entity_uid uuid not null,
  file_name text,
  created_on timestamptz not null default now(),
  modified_on timestamptz not null default now(),
  status text not null default 'INITIATED',
  -- For whom it was asked first.
  client_id text not null,
  -- SHA-256 over type, entity, parameters and MIME type: what "the same report" means.
  request_key bytea not null,
  -- Days that it speaks of, both included; null where it tells of the moment it was made.
  period_from date,
  period_to date,
  -- Whether the period had ended when its rows were read: an open one is made anew when it is asked for again.
  period_closed boolean,
  -- The moment of the snapshot that its rows were read in.
  as_of timestamptz,
  lines bigint,
  -- Control totals: one entry a currency, minor units as text.
  totals jsonb,
  bytes bigint,
  sha256 bytea,
  storage_key text,
  failure_reason text,
  -- When retention removed its file.
  removed_on timestamptz,
  constraint report_status_is_known check (
    status in ('INITIATED', 'INVALID_INPUT_PARAMETERS', 'PROCESSING_STARTED', 'FAILED', 'SUCCESSFUL')
  ),
  constraint report_mime_type_is_known check (mime_type in ('application/pdf', 'text/csv', 'text/plain')),
  constraint report_parameters_are_an_object check (jsonb_typeof(report_parameter) = 'object'),
  constraint only_successful_has_a_file check (
    (status = 'SUCCESSFUL' and sha256 is not null and bytes is not null and file_name is not null
      and (storage_key is null) = (removed_on is not null))
    or (status <> 'SUCCESSFUL' and sha256 is null and bytes is null and storage_key is null)
  ),
  constraint only_ended_badly_has_a_reason check (
    (status in ('FAILED', 'INVALID_INPUT_PARAMETERS')) = (failure_reason is not null)
  ),
  constraint period_ends_after_it_begins check (period_from <= period_to)
);
-- Of two jobs that ask for the same report, one makes it and the other waits.
create unique index one_report_of_a_request_is_under_way on tokenmill.report (request_key)
  where status in ('INITIATED', 'PROCESSING_STARTED');
create index report_of_request on tokenmill.report (request_key, created_on desc);
create index report_of_entity on tokenmill.report (report_entity_uid, created_on desc, report_uid);
create index report_is_old on tokenmill.report (created_on);

grant select on tokenmill.report to tokenmill_reader;
