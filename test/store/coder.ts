// Codes of rows for tests of the store alone, which have no vault.
import { createHmac } from 'node:crypto'
import type { Coder } from '../../src/store/codes.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'

const macOf = (text: string) => createHmac('sha256', 'a key of this test').update(text).digest().subarray(0, 16)

/** It has version 1 alone. */
export const CODER: Coder = {
  receiptMac: text => ({ mac: macOf(text), keyVersion: 1 }),
  receiptMacBy: (text, keyVersion) => (keyVersion === 1 ? macOf(text) : undefined),
}

/** Codes the receipts that a test wrote by statements of its own. */
export async function codeAll(db: Db): Promise<void> {
  await db.query({
    text: `insert into tokenmill.receipt_key (receipt_id, day, revision)
select receipt_id, day, 1
from tokenmill.receipt
on conflict (receipt_id) do nothing`,
  })
  const { rows } = await db.query<{ id: string }>({
    text: 'select receipt_id as id from tokenmill.receipt where mac is null',
  })
  for (const found of await receipts.findAll(
    db,
    rows.map(({ id }) => id),
  ))
    await receipts.codeAnew(db, CODER, found)
}
