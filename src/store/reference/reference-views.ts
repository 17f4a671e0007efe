// Source references as they may be shown: what must travel with a card, without a billing address and without what a
// reversal would put back. It reads only; source-references.ts has rows for writing.
import { type OnFile, type OwnerId, ownerKey } from '../../token/on-file.ts'
import type { TokenRow } from '../../token/token.ts'
import type { Db } from '../pool.ts'
import { type ThirdPartyColumns, thirdPartyOf } from '../token/tokens.ts'
import { OWNER_COLUMNS, wantedOwners } from './owner-columns.ts'

export interface ShownReference extends OwnerId {
  onFile: OnFile
  token: Pick<TokenRow, 'tokenId' | 'thirdParty' | 'tokenType' | 'status' | 'updatedAt'>
}

interface Row extends OwnerId, ThirdPartyColumns, Pick<TokenRow, 'tokenId' | 'tokenType' | 'status' | 'updatedAt'> {
  onFile: OnFile
}

const STORED = `
  reference_no,
  token_scope,
  provider,
  provider_account,
  customer_id,
  card_id,
  on_file,
  token_id`
const COLUMNS = `${OWNER_COLUMNS},
  r.on_file - 'billing_address' as "onFile",
  r.token_id as "tokenId",
  t.*`
const WITH_TOKEN = `cross join lateral (
  select
    status,
    token_type as "tokenType",
    third_party_type as "thirdPartyType",
    third_party_token as "thirdPartyToken",
    updated_at as "updatedAt"
  from tokenmill.token
  where token_id = r.token_id
  limit 1
) as t`

function referenceOf(row: Row): ShownReference {
  const { tokenScope, provider, providerAccount, customerId, cardId, onFile } = row
  const { tokenId, tokenType, status, updatedAt } = row
  const token = { tokenId, thirdParty: thirdPartyOf(row), tokenType, status, updatedAt }
  return { tokenScope, provider, providerAccount, customerId, cardId, onFile, token }
}

export interface TokenPage {
  tokenId: string
  /** Only references with a higher number; 0 for the first page. */
  after: number
  limit: number
}

/** A page of the references of one token, oldest first. */
export async function findByToken(
  db: Db,
  { tokenId, after, limit }: TokenPage,
): Promise<(ShownReference & { referenceNo: number })[]> {
  const { rows } = await db.query<Row & { referenceNo: number }>({
    name: 'shown-references-by-token',
    text: `select r.reference_no as "referenceNo",${COLUMNS}
from (
  select ${STORED}
  from tokenmill.source_reference
  where token_id = $1 and reference_no > $2
  order by reference_no
  limit $3
) as r
${WITH_TOKEN}
order by r.reference_no`,
    values: [tokenId, after, limit],
  })
  return rows.map(row => ({ ...referenceOf(row), referenceNo: row.referenceNo }))
}

/** The references of these owners, by `ownerKey`; missing ones are left out. */
export async function findByOwners(db: Db, owners: readonly OwnerId[]): Promise<Map<string, ShownReference>> {
  if (owners.length === 0) return new Map()
  const { shape, from, isWanted, values } = wantedOwners(owners)
  const { rows } = await db.query<Row>({
    name: `shown-references-by-owner-${shape}`,
    text: `select ${COLUMNS}
from ${from}
cross join lateral (
  select ${STORED}
  from tokenmill.source_reference as r
  where ${isWanted}
  limit 1
) as r
${WITH_TOKEN}`,
    values,
  })
  return new Map(rows.map(referenceOf).map(reference => [ownerKey(reference), reference]))
}

/** Which references to list: those of one scope, or of one provider's account in it. */
export interface ListedReferences {
  tokenScope: string
  of?: Pick<OwnerId, 'provider' | 'providerAccount'> | undefined
}

/** How many references of all scopes one statement reads: few enough for milliseconds. */
const PAGE = 5_000

/** Yields the references in pages, oldest first. A page that isn't full needn't be the last one. */
export async function* pagesOf(db: Db, listed: ListedReferences): AsyncGenerator<ShownReference[]> {
  for (let after = 0; ; ) {
    const { page, last } = await listAfter(db, listed, after)
    if (page.length > 0) yield page
    if (last === undefined) return
    after = last
  }
}

/** `last`: the number of the last reference that was read; undefined behind the end. */
async function listAfter(
  db: Db,
  { tokenScope, of }: ListedReferences,
  after: number,
): Promise<{ page: ShownReference[]; last: number | undefined }> {
  const { rows } = await db.query<(Row | { tokenId: null }) & { last: number | null }>({
    name: of ? 'shown-references-of-account' : 'shown-references-of-scope',
    text: `with page as materialized (
  select ${STORED}
  from tokenmill.source_reference
  where reference_no > $2
  order by reference_no
  limit $3
)
select read.last, found.*
from (select max(reference_no) as last from page) as read
left join lateral (
  select r.reference_no,${COLUMNS}
  from page as r
  ${WITH_TOKEN}
  where token_scope = $1 ${of ? 'and provider = $4 and provider_account = $5' : ''}
) as found on true
order by found.reference_no`,
    values: [tokenScope, after, PAGE, ...(of ? [of.provider, of.providerAccount] : [])],
  })
  const page = rows.flatMap(row => (row.tokenId === null ? [] : [referenceOf(row)]))
  return { page, last: rows[0]?.last ?? undefined }
}
