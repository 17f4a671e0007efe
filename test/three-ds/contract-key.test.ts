// The key of a contract is replaced and ended: the new one signs at once, and the former one verifies until its time.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { revokeFormerContractKey, rotateContractKey } from '../../src/acts/contract-key.ts'
import * as contracts from '../../src/store/three-ds/three-ds-contracts.ts'
import { sweepThreeDs } from '../../src/store/three-ds/three-ds-retention.ts'
import type { Contract } from '../../src/three-ds/contract.ts'
import { createJwt } from '../../src/three-ds/jwt.ts'
import { isProblem } from '../../src/three-ds/problem.ts'
import { makeJwtKey, verify } from '../../src/vault/three-ds-jwt.ts'
import { type Bundle, openBundle } from './bundle.ts'
import { CALLER } from './samples.ts'

const BY = { actor: { kind: 'machine', id: 'test@host' }, reason: 'yearly' } as const
const DAY_MS = 86_400_000

let bundle: Bundle
beforeAll(async () => {
  bundle = await openBundle()
})
afterAll(() => bundle?.close())

describe('the key of a contract', () => {
  let contract: Contract
  beforeEach(async () => {
    contract = await bundle.addContract({ contractId: randomUUID(), name: randomUUID() })
  })
  const rotate = (formerMs: number, key = makeJwtKey()) =>
    rotateContractKey(
      bundle.store,
      bundle.ring,
      { contractId: contract.contractId, key, formerMs, isImported: false },
      BY,
    )
  const revoke = () => revokeFormerContractKey(bundle.store, contract.contractId, BY)
  const found = async () => {
    const sealed = await contracts.find(bundle.store, contract.contractId)
    return sealed && contracts.openContract(bundle.ring, sealed)
  }
  const audited = async () => {
    const { rows } = await bundle.store.query<{ action: string; outcome: string; detail: Record<string, unknown> }>({
      text: 'select action, outcome, detail from tokenmill.audit where subject = $1 order by audit_id',
      values: [contract.contractId],
    })
    return rows
  }

  it('signs at once when it is new, and the one before stays valid', async () => {
    const anew = makeJwtKey()
    const verdict = await rotate(DAY_MS, anew)
    expect(verdict).toMatchObject({ done: { formerUntil: expect.any(Number) } })
    const { key, formerKey } = (await found()) ?? {}
    expect(key?.reveal().equals(anew.reveal())).toBe(true)
    expect(formerKey?.reveal().equals(contract.key.reveal())).toBe(true)
    const created = await createJwt(bundle.ports, CALLER, { threeds_contract_id: contract.contractId })
    if (isProblem(created)) throw new Error('problem')
    // The JWT has no audience, so a right key gives the fault `malformed`, another one `signature`.
    expect(await verify(contract.key, created.jwt, Date.now())).toEqual({ fault: 'signature' })
    expect(await verify(anew, created.jwt, Date.now())).toEqual({ fault: 'malformed' })
    expect(await audited()).toMatchObject([
      { action: 'threeds-contract.key-rotate', outcome: 'done', detail: { reason: 'yearly', key_imported: false } },
    ])
  })

  it('is not replaced while a former one is valid, unless the former one ends at once', async () => {
    await rotate(DAY_MS)
    expect(await rotate(DAY_MS)).toEqual({ refused: 'overlap' })
    expect(await rotate(0)).toEqual({ done: { formerUntil: null } })
    expect((await found())?.formerKey).toBeUndefined()
    expect((await audited()).map(({ outcome }) => outcome)).toEqual(['done', 'refused', 'done'])
  })

  it('that was the former one ends when it is revoked, and then there is none to revoke', async () => {
    await rotate(DAY_MS)
    expect(await revoke()).toEqual({ done: { contractId: contract.contractId } })
    expect((await found())?.formerKey).toBeUndefined()
    expect(await revoke()).toEqual({ refused: 'no_former_key' })
    expect((await audited()).at(-1)).toMatchObject({ action: 'threeds-contract.key-revoke', outcome: 'refused' })
  })

  it('that was the former one ends by itself, and is erased by the hourly sweep', async () => {
    await rotate(DAY_MS)
    await bundle.store.query({
      text: 'update tokenmill.threeds_contract set former_until = now() where contract_id = $1',
      values: [contract.contractId],
    })
    expect((await found())?.formerKey).toBeUndefined()
    await sweepThreeDs(bundle.store, Date.now())
    const { rows } = await bundle.store.query<{ former_key_sealed: Buffer | null }>({
      text: 'select former_key_sealed from tokenmill.threeds_contract where contract_id = $1',
      values: [contract.contractId],
    })
    expect(rows).toEqual([{ former_key_sealed: null }])
  })

  it('of a contract that is not there is refused', async () => {
    contract = { ...contract, contractId: randomUUID() }
    expect(await rotate(DAY_MS)).toEqual({ refused: 'no_contract' })
  })
})
