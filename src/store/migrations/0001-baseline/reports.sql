-- Reports, and what is done by schedule.

-- Reports. `report_uid` is the receipt id of the job that makes the report: known before the job runs, the same for
-- each of its attempts. The file lies in the report store under `storage_key`; retention removes file and row together.
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
  -- While it is being made: those written so far.
  lines bigint,
  -- Control totals: [{currency?, lines, sums: {column: …}}], minor units and counts as text.
  totals jsonb,
  bytes bigint,
  sha256 bytea,
  storage_key text,
  failure_reason text,
  constraint report_status_is_known check (
    status in ('INITIATED', 'INVALID_INPUT_PARAMETERS', 'PROCESSING_STARTED', 'FAILED', 'SUCCESSFUL')
  ),
  constraint report_mime_type_is_known check (mime_type in ('application/pdf', 'text/csv', 'text/plain')),
  constraint report_parameters_are_an_object check (jsonb_typeof(report_parameter) = 'object'),
  constraint only_successful_has_a_file check (
    case when status = 'SUCCESSFUL' then num_nulls(sha256, bytes, file_name, storage_key, period_closed, as_of, lines) = 0
    else num_nonnulls(sha256, bytes, storage_key) = 0 end
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

-- For searches (report-search.ts): the terms that leave few rows; the others are looked at row by row.
create index report_of_type on tokenmill.report (report_entity_uid, report_type, created_on desc, report_uid);

create index report_of_clearing_date on tokenmill.report (report_entity_uid, ((report_parameter->>'clearingDate') collate "C"));

create index report_of_reportable_day on tokenmill.report (report_entity_uid, ((report_parameter->>'reportableDay') collate "C"));

create index report_of_invoice_period on tokenmill.report (report_entity_uid, ((report_parameter->>'invoicePeriodFrom') collate "C"));

create index report_is_old on tokenmill.report (created_on);

create index report_of_file on tokenmill.report (storage_key) where storage_key is not null;

-- What is done by the clock, every night: reports of clients, and the sweep of tokens whose expiry date has passed (one
-- row, which nobody adds or removes).
create table tokenmill.schedule (
  schedule_id uuid primary key,
  kind text not null,
  -- On whose behalf a report is asked for.
  client_id text references tokenmill.client,
  report_type text,
  -- Null: every entity that the client has when the run is made.
  entity_id uuid,
  mime_type text,
  parameters jsonb not null default '{}',
  -- On the clock of the zone.
  time text not null,
  zone text not null,
  created_at timestamptz not null default now(),
  removed_at timestamptz,
  -- A schedule can be paused. What it misses meanwhile is due from the moment at which it is resumed.
  paused_at timestamptz,
  resumed_at timestamptz,
  constraint schedule_kind_is_known check (kind in ('report', 'token-expiry')),
  constraint report_schedule_says_what_and_for_whom check (
    case when kind = 'report' then num_nulls(client_id, report_type, mime_type) = 0
    else num_nonnulls(client_id, report_type, mime_type, entity_id) = 0 end
  ),
  constraint schedule_time_is_of_the_clock check (time ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$'),
  constraint schedule_parameters_are_an_object check (jsonb_typeof(parameters) = 'object'),
  -- Tokens past their date are always suspended.
  constraint only_reports_are_paused check (kind = 'report' or num_nonnulls(paused_at, resumed_at) = 0)
);

create unique index one_sweep_of_token_expiry on tokenmill.schedule (kind) where kind = 'token-expiry';

insert into tokenmill.schedule (schedule_id, kind, time, zone)
  values ('7e1f0c2a-5b3d-4c6e-8f90-a1b2c3d4e5f6', 'token-expiry', '00:15', 'UTC');

-- A run of a schedule: the law of what is made by the clock. Whatever fires, and however often, there is one row for a
-- date (and entity), and one report.
create table tokenmill.schedule_run (
  schedule_id uuid not null references tokenmill.schedule,
  business_date date not null,
  -- Zero where the run isn't an entity's.
  entity_id uuid not null,
  -- That of the job that the run asks for; null where it asks for many.
  receipt_id uuid,
  state text not null default 'DUE',
  due_at timestamptz not null,
  -- When it is to be looked at again, by whoever comes first.
  next_at timestamptz,
  attempts integer not null default 0,
  faults integer not null default 0,
  report_uid uuid,
  -- Of the expiry sweep: tokens that were asked for.
  tokens bigint,
  reason text,
  late_at timestamptz,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  primary key (schedule_id, business_date, entity_id),
  constraint receipt_answers_one_run unique (receipt_id),
  constraint run_state_is_known check (state in ('DUE', 'QUEUED', 'FAULTED', 'SUCCEEDED', 'FAILED')),
  constraint only_an_open_run_is_looked_at_again check ((state in ('DUE', 'QUEUED', 'FAULTED')) = (next_at is not null)),
  constraint ended_run_has_an_end check ((state in ('SUCCEEDED', 'FAILED')) = (ended_at is not null)),
  constraint run_that_failed_says_why check (state not in ('FAULTED', 'FAILED') or reason is not null)
);

create index schedule_run_open on tokenmill.schedule_run (next_at) where next_at is not null;

create index schedule_run_newest on tokenmill.schedule_run (business_date, schedule_id, entity_id);

create index schedule_run_of_entity on tokenmill.schedule_run (entity_id, business_date, schedule_id);

create index schedule_run_in_state on tokenmill.schedule_run (state, business_date, schedule_id, entity_id)
  where state <> 'SUCCEEDED';

create index schedule_run_failed on tokenmill.schedule_run (ended_at) where state = 'FAILED';

grant select on tokenmill.report to tokenmill_reader;

grant select on tokenmill.schedule to tokenmill_reader;

grant select on tokenmill.schedule_run to tokenmill_reader;
