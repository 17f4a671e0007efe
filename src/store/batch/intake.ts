// Batches that came over HTTP: the request and its progress. A row is RECEIVING while the body streams in; only a
// complete body makes it ACCEPTED. Its chunks are in intake-chunks.ts.
import { Fault } from '../../errors.ts'
import type { RecordKind } from '../../job/catalogue.ts'
import { type Counts, noCounts, OUTCOMES } from '../../job/outcome.ts'
import type { Db } from '../pool.ts'

export interface Intake {
  intakeNo: number
  clientId: string
  entityId: string
  batchId: string
  recordKind: RecordKind
  tokenScope: string | null
  dryRun: boolean
  state: 'RECEIVING' | 'ACCEPTED' | 'CANCELLED'
  /** Keyed hash of query and body; null while the body is being received. */
  bodyMac: Buffer | null
  /** The version of the data key `intake` that made it. */
  bodyVersion: number
  records: number
  chunks: number
  chunksDone: number
  /** Of a finished batch as the workers' row has them: a failed chunk may have been done after an operator retried it. */
  counts: Counts
  /** When the batch was accepted, ms since the epoch. Whether a card has expired is decided by this time. */
  acceptedAt: number
  /** No chunk starts after this time. */
  expiresAt: number
  finishedAt: number | null
  /** The members of the row that workers keep for the batch; null if there is none, as for a dry run. */
  batch: { pausedAt: number | null; cancelledAt: number | null; activeAt: number } | null
}

const REVISED = `i.state = 'ACCEPTED' and i.finished_at is not null and b.finished_at is not null and b.rows_done = i.records`
const COLUMNS = `
  i.intake_no as "intakeNo",
  i.client_id as "clientId",
  i.entity_id as "entityId",
  i.batch_id as "batchId",
  i.record_kind as "recordKind",
  i.token_scope as "tokenScope",
  i.dry_run as "dryRun",
  i.state,
  i.body_mac as "bodyMac",
  i.body_mac_version as "bodyVersion",
  i.records,
  i.chunks,
  i.chunks_done as "chunksDone",
  case when ${REVISED} then b.counts else i.counts end as counts,
  i.accepted_at as "acceptedAt",
  i.expires_at as "expiresAt",
  i.finished_at as "finishedAt",
  b.paused_at as "pausedAt",
  b.cancelled_at as "cancelledAt",
  b.active_at as "activeAt"`
const FROM = `from tokenmill.intake as i left join tokenmill.batch as b
  on b.client_id = i.client_id and b.batch_id = i.batch_id and not i.dry_run`

type Row = Omit<Intake, 'counts' | 'batch'> & {
  counts: Partial<Counts>
  pausedAt: number | null
  cancelledAt: number | null
  /** Null if there is no row of the batch. */
  activeAt: number | null
}

function intakeOf({ counts, pausedAt, cancelledAt, activeAt, ...intake }: Row): Intake {
  return {
    ...intake,
    counts: { ...noCounts(), ...counts },
    batch: activeAt === null ? null : { pausedAt, cancelledAt, activeAt },
  }
}

export type NewIntake = Pick<
  Intake,
  'clientId' | 'entityId' | 'batchId' | 'recordKind' | 'tokenScope' | 'dryRun' | 'acceptedAt' | 'expiresAt'
>

/** Inserts a row for a body that is being received. Returns the row's number. */
export async function begin(db: Db, intake: NewIntake): Promise<number> {
  const { rows } = await db.query<Pick<Intake, 'intakeNo'>>({
    text: `insert into tokenmill.intake (
  client_id,
  entity_id,
  batch_id,
  record_kind,
  token_scope,
  dry_run,
  accepted_at,
  expires_at
)
values (
  $1,
  $2,
  $3,
  $4,
  $5,
  $6,
  $7,
  $8
)
returning intake_no as "intakeNo"`,
    values: [
      intake.clientId,
      intake.entityId,
      intake.batchId,
      intake.recordKind,
      intake.tokenScope,
      intake.dryRun,
      new Date(intake.acceptedAt),
      new Date(intake.expiresAt),
    ],
  })
  return rows[0]?.intakeNo ?? 0
}

/** Records that the body is still arriving, so that the row isn't removed as stale. False if it was removed. */
export async function touch(db: Db, intakeNo: number): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.intake
set touched_at = now()
where intake_no = $1 and state = 'RECEIVING'`,
    values: [intakeNo],
  })
  return count === 1
}

/**
 * Accepts the batch: its body is complete. False if the row was removed as stale. Fails if another batch with this id was
 * accepted first (`isAccepted`).
 */
export async function accept(
  db: Db,
  intakeNo: number,
  read: { bodyMac: Buffer; bodyVersion: number; records: number; chunks: number },
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.intake
set
  state = 'ACCEPTED',
  body_mac = $2,
  records = $3,
  chunks = $4,
  body_mac_version = $5
where intake_no = $1 and state = 'RECEIVING'`,
    values: [intakeNo, read.bodyMac, read.records, read.chunks, read.bodyVersion],
  })
  return count === 1
}

/** Whether a transaction failed because another batch with the same id was accepted first. */
export function isAccepted(error: unknown): boolean {
  const { constraint } = (error instanceof Fault ? error.cause : error) as { constraint?: string }
  return constraint === 'one_accepted_intake_per_batch_id'
}

/** Removes a batch that is still being received, and its chunks. */
export async function discard(db: Db, intakeNo: number): Promise<void> {
  await db.query({
    text: `delete from tokenmill.intake
where intake_no = $1 and state = 'RECEIVING'`,
    values: [intakeNo],
  })
}

/**
 * Removes batches whose body has not grown since `before` (ms since the epoch), because their receiver died. Up to 10
 * at once; returns how many.
 */
export async function discardStale(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.intake
where intake_no in (
  select intake_no
  from tokenmill.intake
where state = 'RECEIVING' and touched_at < $1
  order by touched_at
  limit 10
  for update skip locked
)`,
    values: [new Date(before)],
  })
  return count
}

/** An accepted batch. */
export async function find(db: Db, clientId: string, batchId: string): Promise<Intake | undefined> {
  const { rows } = await db.query<Row>({
    name: 'intake-find',
    text: `select ${COLUMNS}
${FROM}
where i.client_id = $1 and i.batch_id = $2 and i.state <> 'RECEIVING'`,
    values: [clientId, batchId],
  })
  return rows[0] && intakeOf(rows[0])
}

export async function findByNumbers(db: Db, intakeNos: readonly number[]): Promise<Intake[]> {
  const { rows } = await db.query<Row>({
    name: 'intake-by-number',
    text: `select found.*
from unnest($1::bigint[]) as wanted(no)
cross join lateral (
  select ${COLUMNS}
  ${FROM}
  where i.intake_no = wanted.no
  limit 1
) as found`,
    values: [`{${intakeNos.join(',')}}`],
  })
  return rows.map(intakeOf)
}

/** Cancels a batch. False if it was cancelled before or is finished. */
export async function cancel(db: Db, intakeNo: number): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.intake
set state = 'CANCELLED'
where intake_no = $1 and state = 'ACCEPTED' and finished_at is null`,
    values: [intakeNo],
  })
  return count === 1
}

/** Unfinished batches whose chunks had to start before `before` (ms since the epoch). */
export async function findExpired(db: Db, before: number): Promise<number[]> {
  const { rows } = await db.query<Pick<Intake, 'intakeNo'>>({
    text: `select intake_no as "intakeNo"
from tokenmill.intake
where state <> 'RECEIVING' and finished_at is null and expires_at < $1
limit 100`,
    values: [new Date(before)],
  })
  return rows.map(row => row.intakeNo)
}

/** Removes batches that ended so long ago that the data of their results are gone. Returns how many. */
export async function removeOld(db: Db, before: { batches: number; dryRuns: number }): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.intake
where intake_no in (
  select intake_no
  from tokenmill.intake
where finished_at < case when dry_run then $2::timestamptz else $1::timestamptz end
  limit 10
)`,
    values: [new Date(before.batches), new Date(before.dryRuns)],
  })
  return count
}

const SUMS = OUTCOMES.map(o => `coalesce(sum((s.counts->>'${o}')::bigint), 0) as "${o}"`).join(', ')
const ADDED = OUTCOMES.map(o => `'${o}', coalesce((i.counts->>'${o}')::bigint, 0) + sums."${o}"`).join(', ')
/**
 * For a statement that ends chunks: adds the rows of its subquery `settled (intake_no, counts)` to the counts of the
 * batches. A batch without open chunks is then finished.
 */
export const COUNT_SETTLED = `update tokenmill.intake as i
set chunks_done = i.chunks_done + sums.n, counts = jsonb_build_object(${ADDED}),
  finished_at = case when i.chunks_done + sums.n = i.chunks then now() end
from (select s.intake_no, count(*) as n, ${SUMS} from settled as s group by s.intake_no) as sums
where i.intake_no = sums.intake_no`
