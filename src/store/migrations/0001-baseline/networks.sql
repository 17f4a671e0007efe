-- Tokens of card networks and of third parties.

create table tokenmill.scheme_token (
  provision_id uuid primary key,
  token_id uuid not null,
  token_scope uuid not null,
  -- Who had it provisioned: told of what happens to it.
  client_id text not null,
  provider text not null,
  current boolean not null,
  -- Provisioned by the loop; else by a job, and the loop only finds out what became of it.
  background boolean not null,
  state text not null,
  reference text,
  -- The seal of the reference for this row: that tokenmill wrote it here.
  reference_sealed bytea,
  reference_version smallint,
  suspended_by text[] not null default '{}',
  sealed bytea,
  seal_version smallint,
  last_four text,
  expiry_month smallint,
  expiry_year smallint,
  par text,
  -- The card, sealed, while it isn't known what became of it.
  card bytea,
  card_version smallint,
  -- Why the network made none.
  refusal text,
  -- Since when it is to be deleted at the network.
  retired_at timestamptz,
  -- A call that may have had its effect.
  asked text,
  -- The intent that acted on it last.
  last_intent uuid,
  -- Who is asking the network now; ends at due_at.
  lease uuid,
  -- When something is to be done about it.
  due_at timestamptz,
  attempts integer not null default 0,
  -- When it was last held against the network.
  checked_at timestamptz,
  version integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- Makes a third party's reuse token; else a scheme token. The token's row says whose it is and what it is called; the
  -- provisioning at the third party is a row like a scheme token's, so that the same steps make it, undo it and delete it.
  third_party boolean not null default false,
  -- When a token took it up.
  taken_at timestamptz,
  -- The fingerprints of a third party's card, while it may come to a token: of several jobs one asks for it.
  cards uuid[],
  constraint scheme_state_is_known check (state in ('PENDING', 'INACTIVE', 'ACTIVE', 'SUSPENDED', 'DELETED', 'VOID')),
  constraint scheme_call_is_known check (asked in ('PROVISION', 'SUSPEND', 'RESUME')),
  constraint known_to_the_network_by_reference check ((state in ('PENDING', 'VOID')) = (reference is null)),
  constraint reference_is_sealed check ((reference is null) = (reference_sealed is null)),
  constraint reference_names_its_key check ((reference_sealed is null) = (reference_version is null)),
  constraint card_is_kept_only_while_pending check (card is null or state = 'PENDING'),
  constraint card_names_its_key check ((card is null) = (card_version is null)),
  constraint number_is_kept_only_while_live check (sealed is null or state in ('INACTIVE', 'ACTIVE', 'SUSPENDED')),
  constraint number_names_its_key check ((sealed is null) = (seal_version is null)),
  constraint par_has_its_form check (par ~ '^[0-9A-Z]{29}$'),
  constraint lease_has_an_end check (lease is null or due_at is not null),
  constraint retired_is_due_until_it_is_gone check (
    retired_at is null or state in ('DELETED', 'VOID') or due_at is not null
  ),
  constraint third_party_is_no_scheme_token check (not third_party or not current),
  constraint third_party_is_live_or_nothing check (not third_party or state in ('PENDING', 'ACTIVE', 'VOID')),
  constraint cards_are_kept_only_while_live check (
    cards is null or (third_party and state in ('PENDING', 'ACTIVE') and retired_at is null)
  )
);
alter table tokenmill.scheme_token set (autovacuum_vacuum_scale_factor = 0.02);

create unique index one_current_scheme_token_per_token on tokenmill.scheme_token (token_id) where current;

create unique index network_reference_stands_once on tokenmill.scheme_token (provider, reference) where reference is not null;

create index scheme_token_of_token on tokenmill.scheme_token (token_id);

create index scheme_token_due on tokenmill.scheme_token (due_at) where due_at is not null;

create index scheme_token_leased on tokenmill.scheme_token (lease) where lease is not null;

create index scheme_token_check on tokenmill.scheme_token (coalesce(checked_at, created_at))
  where retired_at is null and state in ('INACTIVE', 'ACTIVE', 'SUSPENDED');

create index scheme_token_ended on tokenmill.scheme_token (updated_at) where state in ('DELETED', 'VOID');

-- Not unique: two entities' tokens may be called the same.
create index third_party_by_name on tokenmill.scheme_token (reference) where third_party and state = 'ACTIVE';

-- What a job asked of the network for a token: recorded before the call, settled with its answer. A repeat of the job
-- goes on from here; a reversal undoes by it.
create table tokenmill.scheme_intent (
  intent_id uuid primary key,
  receipt_id uuid not null,
  token_id uuid not null,
  provision_id uuid not null,
  action text not null,
  state text not null,
  refusal text,
  reversal text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint intent_action_is_known check (action in ('PROVISION', 'SUSPEND', 'RESUME', 'DELETE')),
  constraint intent_state_is_known check (state in ('INTENDED', 'DONE', 'REFUSED', 'ABANDONED')),
  constraint refused_intent_says_why check ((state = 'REFUSED') = (refusal is not null)),
  constraint intent_reversal_is_known check (reversal in ('REQUIRED', 'COMPLETED'))
);

create index scheme_intent_of_receipt on tokenmill.scheme_intent (receipt_id);

create index scheme_intent_owed on tokenmill.scheme_intent (updated_at) where reversal = 'REQUIRED';

create index scheme_intent_by_age on tokenmill.scheme_intent (updated_at);

-- Tokens of which the network has said that something happened: it is asked what.
create table tokenmill.scheme_notice (
  provider text not null,
  reference text not null,
  noticed_at timestamptz not null,
  due_at timestamptz not null,
  primary key (provider, reference)
);

create index scheme_notice_due on tokenmill.scheme_notice (due_at);

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
  -- How a provider slows a process, beside the process's share of the rate, so that `status` can name the provider.
  -- The rate of the scheme file, calls per second.
  granted double precision,
  -- What is left of it at present, calls per second: below `granted` after 429 or 5xx.
  rate double precision,
  slowed_by text,
  slowed_at timestamptz,
  -- When the process wrote this row. The row of a dead process stays until another one renews its share.
  renewed_at timestamptz,
  primary key (provider, process),
  constraint rates_are_no_less_than_nothing check (wanted_interactive >= 0 and wanted_bulk >= 0 and given >= 0),
  constraint slowdown_has_cause_and_beginning check ((slowed_by is null) = (slowed_at is null)),
  constraint slowed_by_is_known check (slowed_by in ('throttled', 'failing', 'breaker_open'))
);

create index scheme_rate_of_process on tokenmill.scheme_rate (process);

-- A third party's provisioning has its card in a directory of its own, until the provisioning can't become a token.
create table tokenmill.scheme_card (
  fp uuid primary key,
  version smallint not null,
  provision_id uuid not null
);

create function tokenmill.forget_scheme_cards() returns trigger language plpgsql as $$
begin
  delete from tokenmill.scheme_card
  where fp = any(old.cards) and provision_id = old.provision_id;
  new.cards := null;
  return new;
end
$$;
revoke execute on function tokenmill.forget_scheme_cards() from public;

create trigger scheme_token_forgets_its_cards before update on tokenmill.scheme_token for each row
  when (old.cards is not null and new.cards is null)
  execute function tokenmill.forget_scheme_cards();

grant select (provision_id, token_id, token_scope, client_id, provider, current, background, state, reference,
  suspended_by, last_four, expiry_month, expiry_year, par, refusal, retired_at, asked, last_intent, lease, due_at,
  attempts, checked_at, version, created_at, updated_at, third_party, taken_at) on tokenmill.scheme_token to
  tokenmill_reader;

grant select on tokenmill.scheme_intent to tokenmill_reader;

grant select on tokenmill.scheme_notice to tokenmill_reader;

grant select (sealed, seal_version) on tokenmill.scheme_token to tokenmill_gateway;

grant insert, update on tokenmill.scheme_notice to tokenmill_gateway;

grant select on tokenmill.scheme_rate to tokenmill_reader;
