// How long data are kept, and their deletion. Receipts and the outbox are dropped as whole weekly partitions; counters
// and scratch rows go by age; private halves of retired capture keys are destroyed. Each table's own file deletes its
// rows; this file decides when. The scheduler runs it every hour; running it twice does no harm.

import { BEAT } from './access/beat.ts'
import * as captureKeys from './access/capture-keys.ts'
import * as processes from './access/processes.ts'
import * as batchSamples from './batch/batch-samples.ts'
import * as dryRuns from './batch/dry-runs.ts'
import * as events from './event/events.ts'
import * as outbox from './job/outbox.ts'
import * as receiptKeys from './job/receipt-keys.ts'
import { type Db, LostRace, type Store } from './pool.ts'
import * as references from './reference/source-references.ts'
import { PARTITION_LOCK, PARTITIONED, partitionStatements } from './schema.ts'
import * as beforeImages from './token/before-images.ts'
import * as guesses from './token/guesses.ts'
import * as workMinutes from './watch/work-minutes.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
export const RETENTION = {
  outboxDays: 7,
  eventDays: 7,
  captureKeyDays: 8,
  hours: 24,
  dryRunDays: 8,
  lockMsMax: 2_000,
} as const

interface Swept {
  /** The names of the dropped partitions. */
  partitions: string[]
  /** Keys of jobs that were answered without a receipt. */
  answers: number
  guesses: number
  scratch: number
  dryRuns: number
  captureKeys: number
  beforeImages: number
  formerReferences: number
  processes: number
  batchSamples: number
  /** Rows of what was done in a minute. */
  minutes: number
  events: number
  untoldEvents: number
}

/** Runs everything in this file once. `receiptDays`: at least 8. */
export async function sweep(store: Store, receiptDays: number, now: number): Promise<Swept> {
  await ensurePartitions(store, now)
  const partitions: string[] = []
  for (const partition of await findEnded(store, now)) {
    const days = await daysToKeep(store, partition, receiptDays)
    if (partition.endedAt + days * DAY_MS > now) continue
    if (partition.table === 'receipt') await receiptKeys.eraseWeek(store, partition.monday)
    if (await dropPartition(store, partition)) partitions.push(partition.name)
  }
  const eventsBefore = now - RETENTION.eventDays * DAY_MS
  const failures: unknown[] = []
  // A step that fails keeps no other from being done.
  const step = async (erase: () => Promise<number>): Promise<number> => {
    try {
      return await erase()
    } catch (error) {
      failures.push(error)
      return 0
    }
  }
  const swept: Swept = {
    partitions,
    answers: await step(() => inPages(page => receiptKeys.eraseAnswers(store, now - receiptDays * DAY_MS, page))),
    guesses: await step(() => inPages(page => guesses.eraseOld(store, now - RETENTION.hours * HOUR_MS, page))),
    scratch: await step(() => dryRuns.eraseOldScratch(store, now - RETENTION.hours * HOUR_MS, PAGE)),
    dryRuns: await step(() => dryRuns.eraseOldUse(store, now - RETENTION.dryRunDays * DAY_MS)),
    captureKeys: await step(() => captureKeys.destroyRetired(store, now - RETENTION.captureKeyDays * DAY_MS)),
    beforeImages: await step(() => inPages(page => beforeImages.eraseOld(store, now, page))),
    formerReferences: await step(() => inPages(page => references.eraseFormer(store, now - REVERSIBLE_MS, page))),
    processes: await step(() => processes.removeSilent(store, BEAT.keptMs)),
    batchSamples: await step(() => inPages(page => batchSamples.eraseOld(store, now - receiptDays * DAY_MS, page))),
    minutes: await step(() => workMinutes.eraseOld(store, now - workMinutes.WORK_MINUTES.keptDays * DAY_MS)),
    // Unlike an answer, an event that is still unpublished then is erased, too, and never published.
    untoldEvents: await step(() => inPages(page => outbox.eraseUntoldEvents(store, eventsBefore, page))),
    events: await step(() => inPages(page => events.eraseOld(store, eventsBefore, page))),
  }
  if (failures.length > 0) throw failures[0]
  return swept
}

const REVERSIBLE_MS = beforeImages.BEFORE_IMAGE_HOURS * HOUR_MS
const PAGE = 5_000

/** Erases until nothing is left. `erase(page)` erases at most `page` rows and returns how many. */
export async function inPages(erase: (page: number) => Promise<number>): Promise<number> {
  let erased = 0
  for (;;) {
    const count = await erase(PAGE)
    erased += count
    if (count < PAGE) return erased
  }
}

/** How many days a partition is kept. An outbox with unpublished results is kept as long as receipts. */
async function daysToKeep(db: Db, partition: Partition, receiptDays: number): Promise<number> {
  if (partition.table === 'receipt') return receiptDays
  return (await holdsUntold(db, partition)) ? receiptDays : RETENTION.outboxDays
}

/** Makes the missing partitions: of last week, of this week and of the next 8 weeks. */
export async function ensurePartitions(store: Store, now: number): Promise<void> {
  await store.transaction(async db => {
    await db.query({ text: PARTITION_LOCK })
    for (const text of partitionStatements(now)) await db.query({ text })
  })
}

interface Partition {
  table: (typeof PARTITIONED)[number]
  name: string
  /** The first day of its week. */
  monday: string
  /** The end of its week: the first moment after it, ms since the epoch. */
  endedAt: number
}

/** Partitions whose week is over. */
export async function findEnded(db: Db, now: number): Promise<Partition[]> {
  const { rows } = await db.query<{ parent: Partition['table']; name: string }>({
    text: `select parent.relname as parent, part.relname as name
from pg_inherits
join pg_class as part on part.oid = inhrelid
join pg_class as parent on parent.oid = inhparent
join pg_namespace as space on space.oid = parent.relnamespace
where space.nspname = 'tokenmill' and parent.relkind = 'p'
order by part.relname`,
  })
  return rows.flatMap(({ parent, name }) => {
    const [, year, month, day] = /^[a-z]+_(\d{4})(\d\d)(\d\d)$/.exec(name) ?? []
    const endedAt = Date.UTC(Number(year), Number(month) - 1, Number(day) + 7)
    return PARTITIONED.includes(parent) && endedAt <= now
      ? [{ table: parent, name, monday: `${year}-${month}-${day}`, endedAt }]
      : []
  })
}

async function holdsUntold(db: Db, { monday, endedAt }: Partition): Promise<boolean> {
  const { count } = await db.query({
    text: `select
from tokenmill.outbox
where state = 'NEW' and day >= $1::date and day < $2::date
limit 1`,
    values: [monday, new Date(endedAt).toISOString().slice(0, 10)],
  })
  return count === 1
}

/** Drops a partition. False if others are using the table; the next run tries again. */
async function dropPartition(store: Store, { table, monday }: Partition): Promise<boolean> {
  try {
    await store.transaction(async db => {
      // The drop waits for transactions that use the parent table, and later ones would wait behind the drop.
      await db.query({ text: `set local lock_timeout = ${RETENTION.lockMsMax}` })
      await db.query({ text: 'select tokenmill.drop_week($1, $2)', values: [table, monday] })
    })
    return true
  } catch (error) {
    if (error instanceof LostRace) return false
    throw error
  }
}
