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

grant select on tokenmill.transaction, tokenmill.ledger_uid to tokenmill_reader;
