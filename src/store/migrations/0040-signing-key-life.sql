-- A signing key of the installation is announced by a statement that the key before it signs; then it signs results;
-- then it is retired. The public half of each key stays, with the times at which it began and ended. The private half of
-- a retired key is destroyed: clients go on trusting the public half.
alter table tokenmill.signing_key
  drop constraint private_half_names_its_key,
  alter column wrapped_private drop not null,
  add column state text,
  add column statement text,
  add column active_at timestamptz,
  add column retired_at timestamptz;

with life as (
  select kid, lead(created_at) over (order by created_at, kid desc) as retired_at from tokenmill.signing_key
)
update tokenmill.signing_key k set
  active_at = k.created_at,
  retired_at = life.retired_at,
  state = case when life.retired_at is null then 'ACTIVE' else 'RETIRED' end,
  wrapped_private = case when life.retired_at is null then k.wrapped_private end,
  kek_id = case when life.retired_at is null then k.kek_id end,
  private_version = case when life.retired_at is null then k.private_version end
from life where life.kid = k.kid;

alter table tokenmill.signing_key
  alter column state set not null,
  alter column active_at set not null,
  add constraint signing_key_state_is_known check (state in ('ANNOUNCED', 'ACTIVE', 'RETIRED')),
  add constraint announced_key_has_a_statement check (state <> 'ANNOUNCED' or statement is not null),
  add constraint retired_signing_key_has_an_end check ((state = 'RETIRED') = (retired_at is not null)),
  add constraint private_half_of_retired_key_is_gone check ((state = 'RETIRED') = (wrapped_private is null)),
  add constraint private_half_names_its_key check (
    num_nonnulls(kek_id, private_version) = case when wrapped_private is null then 0 else 1 end
  );
create unique index one_active_signing_key on tokenmill.signing_key (state) where state = 'ACTIVE';
create unique index one_announced_signing_key on tokenmill.signing_key (state) where state = 'ANNOUNCED';

-- Which readers of results say that they know an announced key. `reply_to` is empty for a client's queue without a name.
create table tokenmill.signing_key_reader (
  kid text not null references tokenmill.signing_key,
  client_id text not null references tokenmill.client,
  reply_to text not null,
  acknowledged_at timestamptz not null default now(),
  primary key (kid, client_id, reply_to)
);

grant select (state, statement, active_at, retired_at) on tokenmill.signing_key to tokenmill_reader;
grant select on tokenmill.signing_key_reader to tokenmill_reader;
