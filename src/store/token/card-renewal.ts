// Finds tokens whose cards aren't under the versions that are written now, page by page. cards.ts and tokens.ts write them.
import type { Db } from '../pool.ts'

/** The most rows of one set. */
export const SET_ROWS = 500
/** The most rows that one statement reads to find a set. */
const PAGE_ROWS = 5_000

export interface DueToken {
  tokenId: string
  tokenScope: string
  /** Null if the row keeps no number: then nothing can be hashed again. */
  sealed: Buffer | null
  sealVersion: number | null
  cards: readonly string[]
  /** The version of the fingerprint key for each of `cards`; null for a fingerprint without a row in the directory. */
  versions: readonly (number | null)[]
  version: number
}

export interface DueSet {
  /** The tokens to renew, in the order of their ids. */
  rows: DueToken[]
  /** How many rows were looked at. */
  scanned: number
  /** The id of the last row that was looked at; undefined if there was none. */
  last: string | undefined
  isEnd: boolean
}

const READ = 'token_id, token_scope, status, sealed, seal_version, cards, version'

// A row without a number is due only if it loses one fingerprint and keeps another.
const DUE = `status <> 'DELETED' and sorted <> $2::smallint[] and (sealed is not null or sorted @> $2::smallint[])`

/**
 * The next tokens after `after` that aren't known under exactly these versions (ascending). They are sorted by the id, the
 * order in which they are read: to sort them by `place`, PostgreSQL would read the whole page for each set.
 */
export async function findSet(
  db: Db,
  { after, versions }: { after: string; versions: readonly number[] },
): Promise<DueSet> {
  const { rows } = await db.query<DueToken & { place: number }>({
    name: 'cards-due',
    text: `select
  token_id as "tokenId",
  token_scope as "tokenScope",
  sealed,
  seal_version as "sealVersion",
  coalesce(cards, '{}') as cards,
  versions,
  version,
  place
from (
  select
    t.token_id,
    t.token_scope,
    t.status,
    t.sealed,
    t.seal_version,
    t.cards,
    t.version,
    known.versions,
    known.sorted,
    row_number() over (order by t.token_id) as place
  from (select ${READ} from tokenmill.token where token_id > $1 order by token_id limit ${PAGE_ROWS}) as t
  cross join lateral (
    select coalesce(array_agg(c.version order by p.place), '{}') as versions,
      coalesce(array_agg(c.version order by c.version) filter (where c.version is not null), '{}') as sorted
    from unnest(t.cards) with ordinality as p(fp, place)
    left join lateral (select version from tokenmill.card where fp = p.fp limit 1) as c on true
  ) as known
) as page
where ${DUE}
order by token_id
limit ${SET_ROWS}`,
    values: [after, `{${versions.join(',')}}`],
  })
  const last = rows.at(-1)
  if (last && rows.length === SET_ROWS) return { rows, scanned: last.place, last: last.tokenId, isEnd: false }
  return { rows, ...(await findPageEnd(db, after)) }
}

async function findPageEnd(db: Db, after: string): Promise<Omit<DueSet, 'rows'>> {
  const { rows } = await db.query<{ tokenId: string; place: number }>({
    name: 'cards-page-end',
    text: `select token_id as "tokenId", place
from (
  select token_id, row_number() over (order by token_id) as place
  from tokenmill.token
  where token_id > $1
  order by token_id
  limit ${PAGE_ROWS}
) as page
order by place desc
limit 1`,
    values: [after],
  })
  const [last] = rows
  const scanned = last?.place ?? 0
  return { scanned, last: last?.tokenId, isEnd: scanned < PAGE_ROWS }
}

/** About how many tokens there are; undefined if PostgreSQL has no statistics yet. */
export async function estimateTokens(db: Db): Promise<number | undefined> {
  const { rows } = await db.query<{ rows: number }>({
    text: `select greatest(reltuples, 0)::bigint as rows
from pg_class
where oid = 'tokenmill.token'::regclass`,
  })
  return rows[0]?.rows || undefined
}
