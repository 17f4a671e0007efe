// 3-D Secure contracts: the terms that an operator has entered, and the sealed key of the contract's JWTs.
import { Secret } from '../../secret.ts'
import type { Contract, ContractTerms } from '../../three-ds/contract.ts'
import type { Db } from '../pool.ts'
import type { Sealer } from './authentication-row.ts'

/** The columns and the terms that they hold. */
const TERMS = {
  entity_id: 'entityId',
  name: 'name',
  directory_url: 'directoryUrl',
  acquirer_bin: 'acquirerBin',
  acquirer_merchant_id: 'acquirerMerchantId',
  mcc: 'mcc',
  merchant_country: 'merchantCountry',
  merchant_name: 'merchantName',
  requestor_url: 'requestorUrl',
  requestor_id: 'requestorId',
  requestor_name: 'requestorName',
  notification_url: 'notificationUrl',
  issuer: 'issuer',
  org_unit_id: 'orgUnitId',
} as const satisfies Record<string, keyof ContractTerms>
type Column = keyof typeof TERMS
const NAMES = Object.keys(TERMS) as Column[]

const INFO = `
  contract_id as "contractId",
  created_at as "createdAt",
  mac,
  mac_version as "macVersion",
  ${NAMES.map(name => `${name} as "${TERMS[name]}"`).join(',\n  ')}`

type ContractInfo = Omit<Contract, 'key' | 'formerKey'>
export interface MacOfContract {
  /** The code of the terms (src/vault/ring/grants.ts); null: none. */
  mac: Buffer | null
  macVersion: number | null
}

/** A contract whose keys are sealed. */
export interface SealedContract extends ContractInfo, MacOfContract {
  keySealed: Buffer
  keyVersion: number
  /** Null if there is no former key, or its time is over. */
  formerSealed: Buffer | null
  formerVersion: number | null
}

/** What the key of a contract is sealed for. */
export const contractRow = (contractId: string) => `threeds-contract/${contractId}`

/** A contract with its sealed keys, which the reader role may not select. */
export async function find(db: Db, contractId: string): Promise<SealedContract | undefined> {
  const { rows } = await db.query<SealedContract>({
    name: 'threeds-contract-find',
    text: `select
  ${INFO},
  key_sealed as "keySealed",
  key_version as "keyVersion",
  case when former_until > now() then former_key_sealed end as "formerSealed",
  case when former_until > now() then former_key_version end as "formerVersion"
from tokenmill.threeds_contract
where contract_id = $1`,
    values: [contractId],
  })
  return rows[0]
}

export function openContract(sealer: Sealer, sealedContract: SealedContract): Contract {
  const { keySealed, keyVersion, formerSealed, formerVersion, mac: _, macVersion: __, ...info } = sealedContract
  const open = (sealed: Buffer, version: number) =>
    new Secret(sealer.openThreeDs(sealed, version, contractRow(info.contractId)))
  return {
    ...info,
    key: open(keySealed, keyVersion),
    formerKey: formerSealed !== null && formerVersion !== null ? open(formerSealed, formerVersion) : undefined,
  }
}

export interface ListedContract extends ContractInfo, MacOfContract {
  /** Until when the former key is valid, ms since the epoch. */
  formerUntil: number | null
}

/** Contracts without keys, oldest first, of one entity or of all. */
export async function list(db: Db, entityId: string | null = null): Promise<ListedContract[]> {
  const { rows } = await db.query<ListedContract>({
    text: `select ${INFO},
  case when former_until > now() then former_until end as "formerUntil"
from tokenmill.threeds_contract
where $1::uuid is null or entity_id = $1
order by created_at, contract_id`,
    values: [entityId],
  })
  return rows
}

/** Inserts a contract. False if the entity has a contract with this name. */
export async function insert(db: Db, sealer: Sealer, contract: Omit<Contract, 'createdAt'>): Promise<boolean> {
  const { sealed, keyVersion } = sealer.sealThreeDs(contract.key.reveal(), contractRow(contract.contractId))
  const { count } = await db.query({
    text: `insert into tokenmill.threeds_contract (
  contract_id,
  key_sealed,
  key_version,
  ${NAMES.join(', ')}
)
values ($1, $2, $3, ${NAMES.map((_, index) => `$${index + 4}`).join(', ')})
on conflict on constraint contract_name_stands_once_per_entity do nothing`,
    values: [contract.contractId, sealed, keyVersion, ...NAMES.map(name => contract[TERMS[name]])],
  })
  return count === 1
}

/** Sets a contract's code. `former`: only in place of this code. False if no row was changed. */
export async function setMac(
  db: Db,
  contractId: string,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.threeds_contract
set mac = $2, mac_version = $3
where contract_id = $1 and ($4::bytea is null or mac = $4)`,
    values: [contractId, mac, macVersion, former ?? null],
  })
  return count === 1
}

export interface KeyRotation {
  contractId: string
  key: Secret<Buffer>
  /** For how many ms the key that is now in use still verifies after its replacement; 0: not at all. */
  formerMs: number
}

/**
 * Locks a contract until the transaction ends. `formerUntil`: until when a former key is valid, ms since the epoch;
 * null if none is.
 */
export async function lock(db: Db, contractId: string): Promise<{ formerUntil: number | null } | undefined> {
  const { rows } = await db.query<Pick<ListedContract, 'formerUntil'>>({
    text: `select case when former_until > now() then former_until end as "formerUntil"
from tokenmill.threeds_contract
where contract_id = $1
for update`,
    values: [contractId],
  })
  return rows[0]
}

/** Replaces the key. Returns until when the former one is valid, ms since the epoch; null if it ends at once. */
export async function rotateKey(
  db: Db,
  sealer: Sealer,
  { contractId, key, formerMs }: KeyRotation,
): Promise<number | null> {
  const { sealed, keyVersion } = sealer.sealThreeDs(key.reveal(), contractRow(contractId))
  const { rows } = await db.query<Pick<ListedContract, 'formerUntil'>>({
    text: `update tokenmill.threeds_contract
set
  key_sealed = $2,
  key_version = $3,
  former_key_sealed = case when $4 > 0 then key_sealed end,
  former_key_version = case when $4 > 0 then key_version end,
  former_until = case when $4 > 0 then now() + $4 * interval '1 millisecond' end
where contract_id = $1
returning former_until as "formerUntil"`,
    values: [contractId, sealed, keyVersion, formerMs],
  })
  return rows[0]?.formerUntil ?? null
}

/** Erases the former key. */
export async function endFormerKey(db: Db, contractId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.threeds_contract
set former_key_sealed = null, former_key_version = null, former_until = null
where contract_id = $1`,
    values: [contractId],
  })
}

/** Erases former keys whose time is over. */
export async function eraseEndedKeys(db: Db): Promise<void> {
  await db.query({
    text: `update tokenmill.threeds_contract
set former_key_sealed = null, former_key_version = null, former_until = null
where former_until <= now()`,
  })
}
