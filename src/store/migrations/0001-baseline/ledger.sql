-- The ledger of transactions.

-- The ledger of transactions: one row a line, written once and never changed. Partitioned by the month of created_at;
-- months are made when the first line of one comes (src/store/ledger-months.ts). Amounts are minor units of the currency:
-- amount is the gross movement, fee and commission are what is taken off it (negative: given back), and
-- net = amount - fee - commission. Which sign a type may have is part of the law below.
create table tokenmill.transaction (
  transaction_uid uuid not null,
  entity_uid uuid not null,
  merchant_reference text,
  type text not null,
  brand text,
  masked_card text,
  token_reference text,
  currency text not null,
  amount bigint not null,
  fee bigint not null,
  commission bigint not null,
  created_at timestamptz not null,
  settled_at timestamptz,
  clearing_date date,
  clearing_merchant text,
  bank_account text,
  clearing_reference text,
  settlement_batch text,
  batch_no bigint not null,
  recorded_at timestamptz not null default now(),
  -- In the order in which reports read; that a uid stands once over all months is ledger_uid's affair.
  primary key (entity_uid, created_at, transaction_uid),
  constraint transaction_type_is_known check (
    type in ('SALE', 'REFUND', 'CHARGEBACK', 'CHARGEBACK_REVERSAL', 'ADJUSTMENT', 'FEE')
  ),
  constraint amount_has_the_sign_of_its_type check (
    case type
      when 'SALE' then amount >= 0
      when 'CHARGEBACK_REVERSAL' then amount >= 0
      when 'REFUND' then amount <= 0
      when 'CHARGEBACK' then amount <= 0
      when 'FEE' then amount = 0
      else true
    end
  )
) partition by range (created_at);

create index transaction_clearing on tokenmill.transaction (entity_uid, clearing_date) where clearing_date is not null;

-- Every transaction uid, once over all months: a unique index can't span partitions. Written first, and in order of
-- the uid, so that of two chunks with the same line the second waits for the first's end.
create table tokenmill.ledger_uid (
  transaction_uid uuid not null,
  created_at timestamptz not null,
  constraint transaction_uid_stands_once primary key (transaction_uid)
);

-- Makes the partition of the ledger for the month that begins on this day, unless it is there. It is made as a table and
-- then attached, so that transactions on other months don't wait.
create function tokenmill.make_month(month date) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare name text := 'transaction_' || to_char(month, 'YYYYMM');
begin
  if extract(day from month) <> 1 then
    raise exception 'no first day of a month: %', month using errcode = 'invalid_parameter_value';
  end if;
  if to_regclass('tokenmill.' || name) is null then
    execute format('create table tokenmill.%I (like tokenmill.transaction including defaults including constraints)', name);
  end if;
  if not exists (select from pg_inherits where inhrelid = ('tokenmill.' || name)::regclass) then
    execute format('alter table tokenmill.transaction attach partition tokenmill.%I for values from (%L) to (%L)',
      name, to_char(month, 'YYYY-MM-DD') || ' 00:00+00', to_char(month + interval '1 month', 'YYYY-MM-DD') || ' 00:00+00');
  end if;
end
$$;
revoke execute on function tokenmill.make_month(date) from public;
grant execute on function tokenmill.make_month(date) to tokenmill_worker;

grant select on tokenmill.transaction to tokenmill_reader;

grant select on tokenmill.ledger_uid to tokenmill_reader;
