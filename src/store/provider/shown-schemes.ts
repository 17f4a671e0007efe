// The scheme tokens that token records show, readable by any role; the gateway's role also reads the sealed number.
// stored-schemes.ts reads whole rows, for workers.
import type { SchemeRow } from '../../token/scheme.ts'
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

interface Row {
  provision_id: string
  token_id: string
  token_scope: string
  client_id: string
  provider: string
  background: boolean
  state: SchemeRow['state']
  reference: string | null
  suspended_by: string[]
  last_four: string | null
  expiry_month: number | null
  expiry_year: number | null
  par: string | null
  refusal: string | null
  retired_at: number | null
  version: number
}

const COLUMNS = `provision_id, token_id, token_scope, client_id, provider, background, state, reference, suspended_by,
last_four, expiry_month, expiry_year, par, refusal, retired_at, version`

/** The shown scheme token of each token, by token id. */
export async function findByTokens(db: Db, tokenIds: readonly string[]): Promise<Map<string, SchemeRow>> {
  if (tokenIds.length === 0) return new Map()
  const { rows } = await db.query<Row>({
    name: 'shown-schemes',
    text: `select ${COLUMNS} from unnest($1::uuid[]) as wanted(id)
cross join lateral (select ${COLUMNS} from tokenmill.scheme_token where token_id = wanted.id and current limit 1) as found`,
    values: [plains(tokenIds)],
  })
  return new Map(
    rows.map(row => [
      row.token_id,
      {
        provisionId: row.provision_id,
        tokenId: row.token_id,
        tokenScope: row.token_scope,
        clientId: row.client_id,
        provider: row.provider,
        current: true,
        background: row.background,
        state: row.state,
        reference: row.reference,
        suspendedBy: row.suspended_by,
        lastFour: row.last_four,
        expiryMonth: row.expiry_month,
        expiryYear: row.expiry_year,
        par: row.par,
        refusal: row.refusal,
        retiredAt: row.retired_at,
        version: row.version,
      },
    ]),
  )
}

/** The sealed number of one provisioning, for the role that may show it. */
export async function findSealed(
  db: Db,
  provisionId: string,
): Promise<{ sealed: Buffer; version: number } | undefined> {
  const { rows } = await db.query<{ sealed: Buffer | null; seal_version: number | null }>({
    name: 'shown-scheme-number',
    text: 'select sealed, seal_version from tokenmill.scheme_token where provision_id = $1',
    values: [provisionId],
  })
  const row = rows[0]
  return row?.sealed && row.seal_version !== null ? { sealed: row.sealed, version: row.seal_version } : undefined
}
