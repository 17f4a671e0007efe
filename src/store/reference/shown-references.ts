// Source references as they may be shown: what must travel with a card, without a billing address and without what a
// reversal would put back. It reads only; source-references.ts has rows for writing.
import { type OnFile, type OwnerId, ownerKey } from '../../token/on-file.ts'
import type { TokenRow } from '../../token/token.ts'
import type { Db } from '../pool.ts'
import { thirdPartyOf } from '../token/tokens.ts'
import { IS_WANTED, type OwnerRow, ownerIn, ownersList, WANTED_OWNERS } from './owner-columns.ts'

export interface ShownReference extends OwnerId {
  onFile: OnFile
  token: Pick<TokenRow, 'tokenId' | 'thirdParty' | 'tokenType' | 'status'>
}

interface Row extends OwnerRow {
  on_file: OnFile
  token_id: string
  status: TokenRow['status']
  token_type: TokenRow['tokenType']
  third_party_type: string | null
  third_party_token: string | null
}

const OWNER = 'provider, provider_account, customer_id, card_id'
const COLUMNS = `token_scope, ${OWNER}, on_file - 'billing_address' as on_file, token_id`
const WITH_TOKEN = `cross join lateral (select status, token_type, third_party_type, third_party_token
  from tokenmill.token where token_id = r.token_id limit 1) as t`

function referenceOf(row: Row): ShownReference {
  return {
    ...ownerIn(row),
    onFile: row.on_file,
    token: { tokenId: row.token_id, thirdParty: thirdPartyOf(row), tokenType: row.token_type, status: row.status },
  }
}

export interface TokenPage {
  tokenId: string
  /** Only references with a higher number; 0 for the first page. */
  after: number
  limit: number
}

/** Of one token, oldest first. */
export async function findByToken(
  db: Db,
  { tokenId, after, limit }: TokenPage,
): Promise<(ShownReference & { referenceNo: number })[]> {
  const { rows } = await db.query<Row & { reference_no: number }>({
    name: 'shown-references-by-token',
    text: `select r.*, t.* from (select reference_no, ${COLUMNS} from tokenmill.source_reference
  where token_id = $1 and reference_no > $2 order by reference_no limit $3) as r
${WITH_TOKEN} order by r.reference_no`,
    values: [tokenId, after, limit],
  })
  return rows.map(row => ({ ...referenceOf(row), referenceNo: row.reference_no }))
}

/** Those of these owners that are there, by `ownerKey`. */
export async function findByOwners(db: Db, owners: readonly OwnerId[]): Promise<Map<string, ShownReference>> {
  if (owners.length === 0) return new Map()
  const { rows } = await db.query<Row>({
    name: 'shown-references-by-owner',
    text: `select r.*, t.* from ${WANTED_OWNERS}
cross join lateral (select ${COLUMNS} from tokenmill.source_reference where ${IS_WANTED} limit 1) as r ${WITH_TOKEN}`,
    values: ownersList(owners),
  })
  return new Map(rows.map(referenceOf).map(reference => [ownerKey(reference), reference]))
}

/** Of one scope, or of one account of a provider in it. */
export interface ListedReferences {
  tokenScope: string
  of?: Pick<OwnerId, 'provider' | 'providerAccount'> | undefined
}

const PAGE = 1_000

/** In the order of provider, account, customer and card. */
export async function* pagesOf(db: Db, { tokenScope, of }: ListedReferences): AsyncGenerator<ShownReference[]> {
  const isWanted = (one: OwnerId) => !of || (one.provider === of.provider && one.providerAccount === of.providerAccount)
  let after: OwnerId = { tokenScope, provider: '', providerAccount: '', ...of, customerId: '', cardId: '' }
  for (;;) {
    const page = await listAfter(db, after)
    const wanted = page.filter(isWanted)
    if (wanted.length > 0) yield wanted
    const last = wanted.at(-1)
    if (!last || wanted.length < PAGE) return
    after = last
  }
}

async function listAfter(db: Db, after: OwnerId): Promise<ShownReference[]> {
  const { tokenScope, provider, providerAccount, customerId, cardId } = after
  const { rows } = await db.query<Row>({
    name: 'shown-references-after',
    text: `select r.*, t.* from (select ${COLUMNS} from tokenmill.source_reference
  where token_scope = $1 and (${OWNER}) > ($2, $3, $4, $5) order by ${OWNER} limit $6) as r
${WITH_TOKEN} order by ${OWNER}`,
    values: [tokenScope, provider, providerAccount, customerId, cardId, PAGE],
  })
  return rows.map(referenceOf)
}
