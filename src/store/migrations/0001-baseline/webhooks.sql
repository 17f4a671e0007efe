-- Where events are delivered.

-- Who is told of which events, and how far each telling by HTTP has come.
create table tokenmill.endpoint (
  endpoint_id uuid primary key,
  client_id text not null references tokenmill.client,
  -- Null: the client's results queue.
  url text,
  events text[] not null,
  -- The URL may lead to a private address, and may be http.
  any_address boolean not null default false,
  -- The secret of its signatures; the former one signs beside it until its end.
  sealed bytea,
  seal_version smallint,
  former_sealed bytea,
  former_version smallint,
  former_until timestamptz,
  -- It asked for time: nothing is sent to it before, and at most so many at once.
  slow_until timestamptz,
  at_once smallint not null default 4,
  -- It answered 410: nothing is sent until an operator enables it.
  disabled_at timestamptz,
  created_at timestamptz not null default now(),
  removed_at timestamptz,
  constraint endpoint_tells_of_something check (cardinality(events) >= 1),
  -- A removed endpoint's secrets are gone.
  constraint endpoint_url_has_a_secret check (
    (sealed is null) = (seal_version is null) and (removed_at is not null or (url is null) = (sealed is null))),
  constraint only_a_url_is_private check (url is not null or not any_address),
  constraint former_secret_is_whole check (
    (former_sealed is null) = (former_version is null) and (former_sealed is null) = (former_until is null)),
  constraint endpoint_takes_one_to_four_at_once check (at_once between 1 and 4)
);

create index endpoint_of_client on tokenmill.endpoint (client_id) where removed_at is null;

create unique index queue_is_subscribed_once on tokenmill.endpoint (client_id) where url is null and removed_at is null;

-- One event for one URL. The row is the truth; a job on the queue is one attempt.
create table tokenmill.delivery (
  delivery_id uuid primary key,
  event_id bigint not null references tokenmill.event on delete cascade,
  endpoint_id uuid not null references tokenmill.endpoint,
  state text not null default 'WAITING',
  -- Of all attempts; each has its own job.
  attempt integer not null default 0,
  -- The place in the schedule of attempts, which an operator may begin anew.
  step smallint not null default 0,
  -- Failures since its last success, whoever began its schedule anew.
  failures integer not null default 0,
  -- WAITING: when it is due. SENDING: when its job is sent again.
  next_at timestamptz not null default now(),
  -- Of the last attempt.
  tried_at timestamptz,
  status smallint,
  reason text,
  ended_at timestamptz,
  created_at timestamptz not null default now(),
  constraint delivery_state_is_known check (state in ('WAITING', 'SENDING', 'DELIVERED', 'FAILED')),
  constraint ended_delivery_says_when check ((state in ('DELIVERED', 'FAILED')) = (ended_at is not null))
);

create index delivery_due on tokenmill.delivery (endpoint_id, next_at) where state = 'WAITING';

create index delivery_under_way on tokenmill.delivery (endpoint_id, next_at) where state = 'SENDING';

create index delivery_failed on tokenmill.delivery (endpoint_id, ended_at) where state = 'FAILED';

create index delivery_of_event on tokenmill.delivery (event_id);

grant select on tokenmill.delivery to tokenmill_reader;

grant select (endpoint_id, client_id, events, any_address, former_until, slow_until, at_once, disabled_at, created_at,
  removed_at) on tokenmill.endpoint to tokenmill_reader;
