-- How the rate that a network grants is divided between the processes that call it. A process writes its own rows, about
-- once a second; whoever sees that it has stopped doing so removes them.
create table tokenmill.scheme_rate (
  provider text not null,
  process uuid not null,
  interactive boolean not null,
  -- Calls per second, as all below.
  wanted_interactive double precision not null,
  wanted_bulk double precision not null,
  -- What it may be using. All of a provider's together are never more than what is granted.
  given double precision not null,
  -- Counts its renewals.
  beat bigint not null,
  primary key (provider, process),
  constraint rates_are_no_less_than_nothing check (wanted_interactive >= 0 and wanted_bulk >= 0 and given >= 0)
);
create index scheme_rate_of_process on tokenmill.scheme_rate (process);

grant select on tokenmill.scheme_rate to tokenmill_reader;
