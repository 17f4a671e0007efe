// Token scopes: a card has one token within a scope. Each scope belongs to an entity, has settings, and is never
// deleted.
import type { Db } from '../pool.ts'

export const REQUESTORS = ['MERCHANT', 'PSP'] as const
export type Requestor = (typeof REQUESTORS)[number]

export interface Scope {
  tokenScope: string
  entityId: string
  par: boolean
  networkTokens: boolean
  requestor: Requestor
  /** Each new token of the scope gets a scheme token if a network makes one for its card. */
  autoProvision: boolean
  /** How many digits of the BIN are kept and shown. */
  binDigits: 6 | 8
  /** Billing addresses of cards on file are stored. */
  keepBilling: boolean
  /** ms since the epoch. */
  createdAt: number
  /** The code of the row by which workers know that tokenmill wrote it; null if there is none. */
  mac: Buffer | null
  /** The version of the data key `grant`. */
  macVersion: number | null
}

const COLUMNS = `
  token_scope as "tokenScope",
  entity_id as "entityId",
  par,
  network_tokens as "networkTokens",
  requestor,
  auto_provision as "autoProvision",
  bin_digits as "binDigits",
  keep_billing as "keepBilling",
  created_at as "createdAt",
  mac,
  mac_version as "macVersion"`

/** A scope by its UUID. */
export async function find(db: Db, tokenScope: string): Promise<Scope | undefined> {
  const { rows } = await db.query<Scope>({
    name: 'scope-find',
    text: `select ${COLUMNS}
from tokenmill.scope
where token_scope = $1`,
    values: [tokenScope],
  })
  return rows[0]
}

/** All scopes, oldest first; only those of `entityId` if it is given. */
export async function list(db: Db, entityId: string | null = null): Promise<Scope[]> {
  const { rows } = await db.query<Scope>({
    text: `select ${COLUMNS}
from tokenmill.scope
where $1::uuid is null or entity_id = $1
order by created_at, token_scope`,
    values: [entityId],
  })
  return rows
}

/** No scope has this id. */
export const FIRST = '00000000-0000-0000-0000-000000000000'

/** A page of scopes, by id and after `after`. */
export async function listAfter(db: Db, { after, limit }: { after: string; limit: number }): Promise<Scope[]> {
  const { rows } = await db.query<Scope>({
    name: 'scopes-after',
    text: `select ${COLUMNS}
from tokenmill.scope
where token_scope > $1
order by token_scope
limit $2`,
    values: [after, limit],
  })
  return rows
}

/** Sets the code of the row as it is now. `former`: only in place of this code. False if the row wasn't changed. */
export async function setMac(
  db: Db,
  tokenScope: string,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.scope
set mac = $2, mac_version = $3
where token_scope = $1 and ($4::bytea is null or mac = $4)`,
    values: [tokenScope, mac, macVersion, former ?? null],
  })
  return count === 1
}

export type NewScope = Omit<Scope, 'createdAt' | 'mac' | 'macVersion'>

/** Inserts a scope. The store sets the time of its creation. */
export async function insert(db: Db, scope: NewScope): Promise<void> {
  await db.query({
    text: `insert into tokenmill.scope (
  token_scope,
  entity_id,
  par,
  network_tokens,
  requestor,
  auto_provision,
  bin_digits,
  keep_billing
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
)`,
    values: [
      scope.tokenScope,
      scope.entityId,
      scope.par,
      scope.networkTokens,
      scope.requestor,
      scope.autoProvision,
      scope.binDigits,
      scope.keepBilling,
    ],
  })
}
