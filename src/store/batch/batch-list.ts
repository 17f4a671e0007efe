// Lists of batches, for pages, commands and HTTP: two orders, and filters by state, client and begin. A batch's state depends
// on the time, so no index holds it: open batches are read by an index of their own, and there are few of them beside the
// ended ones. It only reads.

import type { BatchState } from '../../job/choices.ts'
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'
import { openState, timesOf } from './batch-counts.ts'
import type { BatchShape } from './batch-row.ts'

/** `need`: open batches first, those that need somebody before all; then the ended ones. Both newest first besides. */
export const LIST_ORDERS = ['need', 'newest'] as const
export type ListOrder = (typeof LIST_ORDERS)[number]

export interface ListFilter {
  /** `open`: in any state but FINISHED and CANCELLED. `going`: RUNNING or OPEN. */
  state?: BatchState | 'open' | 'going' | undefined
  clientId?: string | undefined
  /** Begun at this time or later, and before that one; ms since the epoch. */
  since?: number | undefined
  until?: number | undefined
}

/** The last batch of the page before. `rank`: its place in the order `need`; 0 in the other. */
export interface ListPlace {
  rank: number
  batchNo: number
}

export interface Listed extends ListFilter {
  order: ListOrder
  after?: ListPlace | undefined
  limit: number
  /** ms since the epoch. */
  now: number
}

// $1 entities, $2 and $3 the times of `timesOf`, $4 client, $5 since, $6 until, $7 and $8 rank and number of the last batch of
// the page before, $9 limit. Each is named in every statement, so that PostgreSQL knows its type.
const SEEN = (b: string) => `($1::uuid[] is null or ${b}.entity_id = any($1))`
const WANTED = `($4::text is null or b.client_id = $4) and ($5::timestamptz is null or b.created_at >= $5)
  and ($6::timestamptz is null or b.created_at < $6) and $2::timestamptz is not null and $3::timestamptz is not null
  and $7::integer is not null`
/** Behind that batch in the order of time. A batch that isn't seen has no time here, as one that isn't there. */
const LATER = `($8::bigint is null or (b.created_at, b.batch_no) <
  ((select p.created_at from tokenmill.batch as p where p.batch_no = $8 and ${SEEN('p')}), $8))`
const NEWEST = `order by b.created_at desc, b.batch_no desc
limit $9`
const IS_OPEN = 'b.cancelled_at is null and b.finished_at is null'
const IS_ENDED = '(b.cancelled_at is not null or b.finished_at is not null)'
const ENDED_RANK = 4

const STATE = openState({ columns: 'b.', abandoned: '$2', stalled: '$3' })
const RANK = `case ${STATE} when 'STALLED' then 0 when 'PAUSED' then 1 when 'ABANDONED' then 3 else 2 end`

/** The newest batches for which this holds, by the index of all batches, of a client's or of an entity's. */
function newest(sight: Sight, holds: string, rank: number, later = LATER): string {
  const walk = (more: string) => `select b.batch_no, b.created_at, ${rank} as rank
from tokenmill.batch as b
where ${more} and ${holds} and ${WANTED} and ${later}
${NEWEST}`
  if (sight.sees === 'all') return walk('$1::uuid[] is null')
  return `select b.batch_no, b.created_at, b.rank
from (select distinct unnest($1::uuid[]) as id) as own
cross join lateral (${walk('b.entity_id = own.id')}) as b
${NEWEST}`
}

/** Open batches in one of these states, by the index of open batches. `isRanked`: those that need somebody before others. */
function open(states: readonly BatchState[] | undefined, isRanked: boolean): string {
  const inState = states ? `b.state in (${states.map(state => `'${state}'`).join(', ')})` : 'true'
  const later = isRanked ? `(b.rank > $7 or $8::bigint is null or (b.rank = $7 and ${LATER}))` : LATER
  return `select b.batch_no, b.created_at, ${isRanked ? 'b.rank' : '0 as rank'}
from (
  select
    b.batch_no,
    b.created_at,
    ${STATE} as state,
    ${RANK} as rank
  from tokenmill.batch as b
  where ${IS_OPEN} and ${SEEN('b')} and ${WANTED}
) as b
where ${inState} and ${later}
order by ${isRanked ? 'b.rank, ' : ''}b.created_at desc, b.batch_no desc
limit $9`
}

function sourceOf(sight: Sight, { state, order, after }: Pick<Listed, 'state' | 'order' | 'after'>): string {
  const isRanked = order === 'need'
  if (state === 'FINISHED') return newest(sight, 'b.finished_at is not null and b.cancelled_at is null', ENDED_RANK)
  if (state === 'CANCELLED') return newest(sight, 'b.cancelled_at is not null', ENDED_RANK)
  if (state === 'going') return open(['RUNNING', 'OPEN'], isRanked)
  if (state !== undefined) return open(state === 'open' ? undefined : [state], isRanked)
  if (!isRanked) return newest(sight, 'true', 0)
  if (after?.rank === ENDED_RANK) return newest(sight, IS_ENDED, ENDED_RANK)
  // Those that ended come behind all others, so on this page they begin with the newest.
  const ended = newest(sight, IS_ENDED, ENDED_RANK, 'true')
  return `(${open(undefined, true)}) union all (${ended})`
}

interface Numbered {
  batchNo: number
}

/** A page of batches. */
export async function list<Row, Shown extends Numbered>(
  sight: Sight,
  db: Db,
  asked: Listed,
  { columns, join, of }: BatchShape<Row, Shown>,
): Promise<(Shown & ListPlace)[]> {
  const { clientId, since, until, after, limit, now } = asked
  const { abandoned, stalled } = timesOf(now)
  const at = (ms: number | undefined) => (ms === undefined ? null : new Date(ms))
  const { rows } = await db.query<Row & Pick<ListPlace, 'rank'>>({
    text: `select ${columns}, listed.rank
from (
  select b.batch_no as no, b.created_at as begun, b.rank
  from (${sourceOf(sight, asked)}) as b
  order by b.rank, b.created_at desc, b.batch_no desc
  limit $9
) as listed
join tokenmill.batch as b on b.batch_no = listed.no
${join}
order by listed.rank, listed.begun desc, listed.no desc`,
    values: [
      entitiesOf(sight),
      abandoned,
      stalled,
      clientId,
      at(since),
      at(until),
      after?.rank ?? 0,
      after?.batchNo ?? null,
      limit,
    ],
  })
  return rows.map(row => ({ ...of(row), rank: row.rank }))
}

const PAGE = 500

/** All pages, newest first: this order stays while they are read. */
export async function* listPages<Row, Shown extends Numbered>(
  sight: Sight,
  db: Db,
  asked: Omit<Listed, 'order' | 'limit'>,
  shape: BatchShape<Row, Shown>,
): AsyncGenerator<Shown[]> {
  for (let after = asked.after; ; ) {
    const found = await list(sight, db, { ...asked, order: 'newest', after, limit: PAGE }, shape)
    yield found
    after = found.at(-1)
    if (!after || found.length < PAGE) return
  }
}

/** How many batches of one id are found. Several clients may use the same id. */
const SAME_ID_MAX = 50

/** The batches with this id, newest first. `clientId`: whose; undefined: anybody's. */
export async function findById<Row, Shown>(
  sight: Sight,
  db: Db,
  { batchId, clientId }: { batchId: string; clientId?: string | undefined },
  { columns, join, of }: BatchShape<Row, Shown>,
): Promise<Shown[]> {
  const { rows } = await db.query<Row>({
    text: `select ${columns}
from tokenmill.batch as b
${join}
where b.batch_id = $2 and ($3::text is null or b.client_id = $3) and ${SEEN('b')}
order by b.batch_no desc
limit ${SAME_ID_MAX}`,
    values: [entitiesOf(sight), batchId, clientId ?? null],
  })
  return rows.map(of)
}
