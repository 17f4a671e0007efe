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

type Row = Record<Column, string> & { contract_id: string; created_at: number }
type KeyedRow = Row & { key_sealed: Buffer; key_version: number }

type ContractInfo = Omit<Contract, 'key'>

const infoOf = (row: Row): ContractInfo => ({
  ...(Object.fromEntries(NAMES.map(name => [TERMS[name], row[name]])) as ContractTerms),
  contractId: row.contract_id,
  createdAt: row.created_at,
})

const keyRow = (contractId: string) => `threeds-contract/${contractId}`

/** A contract with its key, which the reader role may not select. */
export async function find(db: Db, sealer: Sealer, contractId: string): Promise<Contract | undefined> {
  const { rows } = await db.query<KeyedRow>({
    name: 'threeds-contract-find',
    text: `select contract_id, created_at, ${NAMES.join(', ')}, key_sealed, key_version
from tokenmill.threeds_contract where contract_id = $1`,
    values: [contractId],
  })
  const row = rows[0]
  if (!row) return undefined
  return { ...infoOf(row), key: new Secret(sealer.openThreeDs(row.key_sealed, row.key_version, keyRow(contractId))) }
}

/** Contracts without keys, oldest first, of one entity or of all. */
export async function list(db: Db, entityId: string | null = null): Promise<ContractInfo[]> {
  const { rows } = await db.query<Row>({
    text: `select contract_id, created_at, ${NAMES.join(', ')} from tokenmill.threeds_contract
where $1::uuid is null or entity_id = $1 order by created_at, contract_id`,
    values: [entityId],
  })
  return rows.map(infoOf)
}

/** Inserts a contract. False if the entity has a contract with this name. */
export async function insert(db: Db, sealer: Sealer, contract: Omit<Contract, 'createdAt'>): Promise<boolean> {
  const { sealed, keyVersion } = sealer.sealThreeDs(contract.key.reveal(), keyRow(contract.contractId))
  const { count } = await db.query({
    text: `insert into tokenmill.threeds_contract (contract_id, key_sealed, key_version, ${NAMES.join(', ')})
values ($1, $2, $3, ${NAMES.map((_, index) => `$${index + 4}`).join(', ')})
on conflict on constraint contract_name_stands_once_per_entity do nothing`,
    values: [contract.contractId, sealed, keyVersion, ...NAMES.map(name => contract[TERMS[name]])],
  })
  return count === 1
}
