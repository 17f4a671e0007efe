// The codes of 3-D Secure contracts: where look-ups go, and on whose account.

import type { Db } from '../store/pool.ts'
import * as contracts from '../store/three-ds/three-ds-contracts.ts'
import { type ContractRow, contractText, isGranted, type MacOfRow } from '../vault/ring/grants.ts'
import { type Grant, macOf } from './grant-rows.ts'
import { type GrantRing, type ListGrants, sealAsMeant } from './grants.ts'

/** Codes a contract that was just written. `meant`: as it was to be written. */
export async function grantContract(db: Db, ring: GrantRing, meant: ContractRow): Promise<void> {
  const contract = await contracts.find(db, meant.contractId)
  await sealAsMeant(db, ring, contract && ofContract(contract), contractText(meant))
}

/** Whether tokenmill wrote the contract's terms. */
export function isContractGranted(ring: Pick<GrantRing, 'grantMacBy'>, contract: ContractRow & MacOfRow): boolean {
  return isGranted(ring, contractText(contract), contract)
}

export const listContractGrants: ListGrants = async db => (await contracts.list(db)).map(ofContract)

function ofContract(contract: ContractRow & MacOfRow): Grant {
  const { contractId } = contract
  return {
    kind: 'threeds-contract',
    id: contractId,
    text: contractText(contract),
    isRevoked: false,
    ...macOf(contract),
    save: (db, ...code) => contracts.setMac(db, contractId, ...code),
  }
}
