// Writes ledger lines for reports directly by SQL.

import { ensureMonths } from '../../src/store/ledger/ledger-months.ts'
import type { Store } from '../../src/store/pool.ts'

export const DAY = '2026-03-05'

export interface Line {
  currency: string
  type: string
  brand: string | null
  amount: bigint
  fee: bigint
  commission: bigint
  batch: string | null
  merchant: string | null
  reference: string | null
}

/** Writes `lines`, created a second apart on DAY and cleared that day. */
export async function writeLines(store: Store, entityId: string, lines: readonly Line[], day = DAY): Promise<void> {
  await ensureMonths(store, [day.slice(0, 7)])
  await store.query({
    text: `insert into tokenmill.transaction (transaction_uid, entity_uid, merchant_reference, type, brand, masked_card, currency, amount,
  fee, commission, created_at, settled_at, clearing_date, clearing_merchant, bank_account, clearing_reference, settlement_batch, batch_no)
select gen_random_uuid(), $1, l->>'reference', l->>'type', l->>'brand', '411111******1111', l->>'currency', (l->>'amount')::bigint,
  (l->>'fee')::bigint, (l->>'commission')::bigint, $2::date + n * interval '1 second', null, $2::date, l->>'merchant', 'DE00', null,
  l->>'batch', 0
from jsonb_array_elements($3::jsonb) with ordinality as given(l, n)`,
    values: [entityId, day, JSON.stringify(lines, (_, value) => (typeof value === 'bigint' ? String(value) : value))],
  })
}

/** `count` lines of DAY, made by the server: several currencies, batches, brands and types. */
export async function fillLedger(store: Store, entityId: string, count: number, day = DAY): Promise<void> {
  await ensureMonths(store, [day.slice(0, 7)])
  await store.query({
    text: `insert into tokenmill.transaction (transaction_uid, entity_uid, merchant_reference, type, brand, masked_card, currency, amount,
  fee, commission, created_at, settled_at, clearing_date, clearing_merchant, bank_account, clearing_reference, settlement_batch, batch_no)
select gen_random_uuid(), $1, 'ORDER-' || n, type, (array['VISA','MASTERCARD','AMEX','JCB'])[n % 4 + 1],
  '411111******' || lpad((n % 10000)::text, 4, '0'), (array['EUR','EUR','EUR','JPY','KWD'])[n % 5 + 1],
  case type when 'REFUND' then -1 when 'FEE' then 0 else 1 end * (n::bigint * 7919 % 250000 + 100), n % 97 + 5, n % 41,
  $2::date + (n % 86400) * interval '1 second', $2::date + interval '1 day', $2::date, 'SHOP ' || n % 3, 'DE89370400440532013000',
  'CLR-' || n % 50, 'B-' || lpad((n % greatest($3 / 500, 3))::text, 5, '0'), 0
from (select n, (array['SALE','SALE','SALE','SALE','REFUND','FEE'])[n % 6 + 1] as type from generate_series(1, $3::int) as n) as made`,
    values: [entityId, day, count],
  })
}
