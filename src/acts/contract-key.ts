// What an operator does to the key of a 3-D Secure contract: puts another one in its place, and ends the former one. No
// audit row holds anything of a key.
import type { Db, Store } from '../store/pool.ts'
import type { Sealer } from '../store/three-ds/authentication-row.ts'
import * as contracts from '../store/three-ds/three-ds-contracts.ts'
import { type ActResult, type By, type Decided, perform } from './act.ts'

/** `overlap`: a former key is still valid, and only two keys can be. */
export type ContractKeyRefusal = 'no_contract' | 'overlap' | 'no_former_key'

export interface ContractKeyRotation extends contracts.KeyRotation {
  /** Whether the key was made outside of tokenmill (`--jwt-key`). */
  isImported: boolean
}

/** From now on the new key signs; the former key verifies for `formerMs` more, at 0 no longer. */
export function rotateContractKey(
  store: Store,
  sealer: Sealer,
  rotation: ContractKeyRotation,
  by: By,
): Promise<ActResult<{ formerUntil: number | null }, ContractKeyRefusal>> {
  const { contractId, formerMs, isImported } = rotation
  return onContract(store, { action: 'threeds-contract.key-rotate', contractId }, by, async (db, formerUntil) => {
    // The former key's own former key would end before its time.
    if (formerUntil !== null && formerMs > 0) return { refused: 'overlap' }
    const until = await contracts.rotateKey(db, sealer, rotation)
    const detail = { former_until: until === null ? null : new Date(until).toISOString(), key_imported: isImported }
    return { done: { formerUntil: until }, detail }
  })
}

/** Ends the former key now. */
export function revokeFormerContractKey(
  store: Store,
  contractId: string,
  by: By,
): Promise<ActResult<{ contractId: string }, ContractKeyRefusal>> {
  return onContract(store, { action: 'threeds-contract.key-revoke', contractId }, by, async (db, formerUntil) => {
    if (formerUntil === null) return { refused: 'no_former_key' }
    await contracts.endFormerKey(db, contractId)
    return { done: { contractId }, detail: { former_until: new Date(formerUntil).toISOString() } }
  })
}

function onContract<Done>(
  store: Store,
  { action, contractId }: { action: string; contractId: string },
  by: By,
  decide: (db: Db, formerUntil: number | null) => Promise<Decided<Done, ContractKeyRefusal>>,
): Promise<ActResult<Done, ContractKeyRefusal>> {
  return perform<Done, ContractKeyRefusal>(store, { action, subject: contractId }, by, async db => {
    const contract = await contracts.lock(db, contractId)
    return contract ? decide(db, contract.formerUntil) : { refused: 'no_contract' }
  })
}
