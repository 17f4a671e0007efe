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

-- Orders, as they are taken in from files: the latest state of each, and nothing before it.
create table tokenmill."order" (
  order_id text collate "C" primary key,
  order_reference text collate "C" not null,
  status text not null,
  order_type text not null,
  created_user_uid uuid not null,
  created_by text not null,
  created_date timestamptz not null,
  modified_user_uid uuid not null,
  modified_by text not null,
  modified_date timestamptz not null,
  entity_uid uuid not null,
  merchant_company text,
  merchant_company_entity_uid uuid,
  customer_entity_uid uuid,
  ingested_at timestamptz not null default now(),
  constraint order_status_is_known check (
    status in ('DRAFT', 'SUBMITTED', 'INPROGRESS', 'COMPLETED', 'CANCELLED', 'ONHOLD')
  ),
  constraint order_type_is_known check (
    order_type in ('POIOrder', 'MerchantOrder', 'POIMaintenanceOrder', 'MerchantMaintenanceOrder', 'POIAccessoryOrder',
      'AdditionalServicesOrder', 'HardwareOrder')
  ),
  constraint order_is_modified_after_it_is_created check (created_date <= modified_date)
);

-- Every search is within one entity and one type; a page is read off one of these from either end.
create index order_by_creation on tokenmill.order (entity_uid, order_type, created_date, order_id);

create index order_by_modification on tokenmill.order (entity_uid, order_type, modified_date, order_id);

create index order_by_reference on tokenmill.order (entity_uid, order_reference);

create index order_by_status on tokenmill.order (entity_uid, order_type, status, created_date);

create index order_by_creator on tokenmill.order (entity_uid, order_type, created_user_uid);

create index order_by_modifier on tokenmill.order (entity_uid, order_type, modified_user_uid);

create index order_by_company on tokenmill.order (entity_uid, merchant_company_entity_uid)
  where merchant_company_entity_uid is not null;

create index order_by_customer on tokenmill.order (entity_uid, customer_entity_uid)
  where customer_entity_uid is not null;

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

grant select on tokenmill."order" to tokenmill_reader;
