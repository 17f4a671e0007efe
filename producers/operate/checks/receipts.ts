// Whether tokenmill itself wrote what was decided and what is told: a sample of receipts, of rows of the outbox and of events,
// newest and random ones, and all rows that workers refused to tell.
import { randomUUID } from 'node:crypto'
import * as events from '../../../src/store/event/events.ts'
import * as outbox from '../../../src/store/job/outbox.ts'
import { isProved } from '../../../src/store/job/receipt.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import type { Db } from '../../../src/store/pool.ts'
import { count } from '../../../src/units.ts'
import { critical, unknown, type Verdict, well } from '../check.ts'
import type { GrantSources } from './grants.ts'

/** So many of the newest rows of the outbox, with their receipts, and of events; and so many random ones of each. */
const SAMPLE = 200
const SHOWN_MAX = 5

export async function askReceipts({
  store,
  ring: open,
}: Pick<GrantSources, 'ring'> & { store(): Promise<Db> }): Promise<Verdict> {
  if (!open) return unknown('this host has no key-encryption key; ask where workers run')
  const [db, ring] = [await store(), await open()]
  const rows = await outbox.sample(db, SAMPLE)
  const newest = rows.slice(0, SAMPLE).map(({ receiptId }) => receiptId)
  const found = await receipts.findAll(db, [
    ...new Set([...newest, ...(await receipts.sampleIds(db, randomUUID(), SAMPLE))]),
  ])
  const happened = await events.sample(db, SAMPLE)
  const unproved = [
    ...found.filter(receipt => !isProved(ring, receipt)).map(({ receiptId }) => `receipt ${receiptId}`),
    ...rows.filter(row => row.state === 'UNPROVED' || !outbox.isProved(ring, row)).map(nameOf),
    ...happened.filter(event => !events.isProved(ring, event)).map(({ eventId }) => `event ${eventId}`),
  ]
  if (unproved.length === 0)
    return well(
      `tokenmill wrote ${count(found.length, 'receipt')}, ${count(rows.length, 'result')} and ${count(happened.length, 'event')} of a sample`,
    )
  const more = unproved.length > SHOWN_MAX ? ` and ${unproved.length - SHOWN_MAX} more` : ''
  const says = `${count(unproved.length, 'row')} not written by tokenmill, or changed since: ${unproved.slice(0, SHOWN_MAX).join(', ')}${more}`
  return critical(
    says,
    'find out who writes to the database; a receipt blocks its job until `tokenmill results confirm ID` says that it stands as it is',
  )
}

const nameOf = ({ outboxId, receiptId }: outbox.Announcement) => `outbox row ${outboxId} (${receiptId})`
