// Queries of reports on the ledger. Amounts are returned as minor units in text; sums are numeric, so nothing
// overflows.
import type { RowsQuery } from './query.ts'

const SECOND = `'YYYY-MM-DD"T"HH24:MI:SS"Z"'`

const LINE = `currency as "currency", settlement_batch as "settlementBatch", transaction_uid::text as "transactionUid",
merchant_reference as "merchantReference", type as "type", brand as "brand", masked_card as "maskedCard",
to_char(created_at at time zone 'UTC', ${SECOND}) as "createdOn", to_char(settled_at at time zone 'UTC', ${SECOND}) as "settledOn",
clearing_date::text as "clearingDate", clearing_merchant as "clearingMerchant", clearing_reference as "clearingReference",
bank_account as "bankAccount", token_reference as "tokenReference", amount::text as "gross", fee::text as "fee",
commission::text as "commission", (amount::numeric - fee - commission)::text as "net"`

const SUMS = `count(*)::text as "lines", sum(amount)::text as "gross", sum(fee)::text as "fee", sum(commission)::text as "commission",
(sum(amount) - sum(fee) - sum(commission))::text as "net"`

const sorted = (column: string) => `${column} collate "C" nulls first`

function listing(where: string, values: RowsQuery['values'], group: string, name: string): RowsQuery {
  const from = `from tokenmill.transaction where entity_uid = $1 and ${where}`
  const order = `${sorted('currency')}, ${sorted(group)}`
  return {
    values,
    lines: `select ${LINE} ${from}
order by ${order}, created_at, transaction_uid`,
    groups: `select currency as "currency", ${group} as "${name}", ${SUMS} ${from}
group by currency, ${group}
order by ${order}`,
    totals: `select currency as "currency", ${SUMS} ${from}
group by currency
order by ${sorted('currency')}`,
  }
}

/** Lines by clearing date and settlement batch. */
export const SETTLEMENT = listing('clearing_date = $2::date', ['from'], 'settlement_batch', 'settlementBatch')

/** Lines by day of creation and type. */
export const TRANSACTIONS = listing(
  `created_at >= $2::date and created_at < $3::date + 1`,
  ['from', 'to'],
  'type',
  'type',
)

const CLEARED = 'from tokenmill.transaction where entity_uid = $1 and clearing_date between $2::date and $3::date'

/**
 * SQL for the growth of a running sum, where the running sum is rounded half away from zero as numeric's round does. It
 * multiplies, because a division of numerics keeps only about sixteen digits.
 */
const part = (of: string) =>
  `(round(sum(${of}) over w * $4::numeric * 0.01) - round((sum(${of}) over w - ${of}) * $4::numeric * 0.01))`

const rounded = (of: string) => `round(${of} * $4::numeric * 0.01)`

const COMMISSION_ORDER = `"clearingDate", ${sorted('"clearingMerchant"')}`

/** Commission by day and clearing merchant, and a percentage of it. */
export const COMMISSION: RowsQuery = {
  values: ['from', 'to', 'percent'],
  lines: `with line as (
  select
    currency as "currency",
    clearing_date as "clearingDate",
    clearing_merchant as "clearingMerchant",
    count(*) as transactions,
    sum(amount) as gross,
    sum(commission) as commission
  ${CLEARED}
  group by 1, 2, 3
), shared as (
  select *, ${part('commission')} as share
  from line
  window w as (partition by "currency" order by ${COMMISSION_ORDER} rows unbounded preceding)
)
select
  "currency",
  "clearingDate"::text,
  "clearingMerchant",
  transactions::text as "transactions",
  gross::text as "gross",
  commission::text as "commission",
  share::text as "partnerShare",
  (commission - share)::text as "retained"
from shared
order by ${sorted('"currency"')}, shared."clearingDate", ${sorted('"clearingMerchant"')}`,
  // A day's share is the growth of the running sum's share on that day.
  groups: `with day as (
  select
    currency as "currency",
    clearing_date as "clearingDate",
    count(distinct coalesce('=' || clearing_merchant, '')) as lines,
    count(*) as transactions,
    sum(amount) as gross,
    sum(commission) as commission
  ${CLEARED}
  group by 1, 2
), shared as (
  select *, ${part('commission')} as share
  from day
  window w as (partition by "currency" order by "clearingDate" rows unbounded preceding)
)
select
  "currency",
  "clearingDate"::text,
  lines::text as "lines",
  transactions::text as "transactions",
  gross::text as "gross",
  commission::text as "commission",
  share::text as "partnerShare",
  (commission - share)::text as "retained"
from shared
order by ${sorted('"currency"')}, shared."clearingDate"`,
  totals: `select
  currency as "currency",
  count(distinct (clearing_date, coalesce('=' || clearing_merchant, '')))::text as "lines",
  count(*)::text as "transactions",
  sum(amount)::text as "gross",
  sum(commission)::text as "commission",
  ${rounded('sum(commission)')}::text as "partnerShare",
  (sum(commission) - ${rounded('sum(commission)')})::text as "retained"
${CLEARED}
group by currency
order by ${sorted('currency')}`,
}

const INVOICE_ORDER = `${sorted('"type"')}, ${sorted('"brand"')}`

/** Charges by type and brand, and a tax on them. */
export const INVOICE: RowsQuery = {
  values: ['from', 'to', 'percent'],
  lines: `with line as (
  select
    currency as "currency",
    type as "type",
    brand as "brand",
    count(*) as transactions,
    sum(amount) as gross,
    sum(fee) as fee,
    sum(commission) as commission,
    sum(fee) + sum(commission) as charge
  ${CLEARED}
  group by 1, 2, 3
), taxed as (
  select *, ${part('charge')} as tax
  from line
  window w as (partition by "currency" order by ${INVOICE_ORDER} rows unbounded preceding)
)
select
  "currency",
  "type",
  "brand",
  transactions::text as "transactions",
  gross::text as "gross",
  fee::text as "fee",
  commission::text as "commission",
  charge::text as "charge",
  tax::text as "tax",
  (charge + tax)::text as "due"
from taxed
order by ${sorted('"currency"')}, ${INVOICE_ORDER}`,
  groups: `with kind as (
  select
    currency as "currency",
    type as "type",
    count(distinct coalesce('=' || brand, '')) as lines,
    count(*) as transactions,
    sum(amount) as gross,
    sum(fee) as fee,
    sum(commission) as commission,
    sum(fee) + sum(commission) as charge
  ${CLEARED}
  group by 1, 2
), taxed as (
  select *, ${part('charge')} as tax
  from kind
  window w as (partition by "currency" order by ${sorted('"type"')} rows unbounded preceding)
)
select
  "currency",
  "type",
  lines::text as "lines",
  transactions::text as "transactions",
  gross::text as "gross",
  fee::text as "fee",
  commission::text as "commission",
  charge::text as "charge",
  tax::text as "tax",
  (charge + tax)::text as "due"
from taxed
order by ${sorted('"currency"')}, ${sorted('"type"')}`,
  totals: `select
  currency as "currency",
  count(distinct (type, coalesce('=' || brand, '')))::text as "lines",
  count(*)::text as "transactions",
  sum(amount)::text as "gross",
  sum(fee)::text as "fee",
  sum(commission)::text as "commission",
  (sum(fee) + sum(commission))::text as "charge",
  ${rounded('(sum(fee) + sum(commission))')}::text as "tax",
  (sum(fee) + sum(commission) + ${rounded('(sum(fee) + sum(commission))')})::text as "due"
${CLEARED}
group by currency
order by ${sorted('currency')}`,
}
