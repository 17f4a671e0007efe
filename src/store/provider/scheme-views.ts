// The scheme tokens that token records show, readable by any role; the gateway's role also reads the sealed number.
// stored-schemes.ts reads whole rows, for workers.
import type { SchemeRow } from '../../token/scheme.ts'
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'
import { SHOWN_COLUMNS } from './scheme-row.ts'

/** The shown scheme token of each token, by token id. */
export async function findByTokens(db: Db, tokenIds: readonly string[]): Promise<Map<string, SchemeRow>> {
  if (tokenIds.length === 0) return new Map()
  const { rows } = await db.query<SchemeRow>({
    name: 'shown-schemes',
    text: `select found.*
from unnest($1::uuid[]) as wanted(id)
cross join lateral (
  select ${SHOWN_COLUMNS}
  from tokenmill.scheme_token
  where token_id = wanted.id and current
  limit 1
) as found`,
    values: [plains(tokenIds)],
  })
  return new Map(rows.map(row => [row.tokenId, row]))
}

/** The sealed number of one provisioning, for the role that may show it. */
export async function findSealed(
  db: Db,
  provisionId: string,
): Promise<{ sealed: Buffer; version: number } | undefined> {
  const { rows } = await db.query<{ sealed: Buffer; version: number }>({
    name: 'shown-scheme-number',
    text: `select sealed, seal_version as version
from tokenmill.scheme_token
where provision_id = $1 and sealed is not null and seal_version is not null`,
    values: [provisionId],
  })
  return rows[0]
}
