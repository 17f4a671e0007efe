-- How a provider slows a process, beside the process's share of the rate, so that `status` can name the provider.
alter table tokenmill.scheme_rate
  -- The rate of the scheme file, calls per second.
  add column granted double precision,
  -- What is left of it at present, calls per second: below `granted` after 429 or 5xx.
  add column rate double precision,
  add column slowed_by text,
  add column slowed_at timestamptz,
  -- When the process wrote this row. The row of a dead process stays until another one renews its share.
  add column renewed_at timestamptz,
  add constraint slowdown_has_cause_and_beginning check ((slowed_by is null) = (slowed_at is null)),
  add constraint slowed_by_is_known check (slowed_by in ('throttled', 'failing', 'breaker_open'));
