// Makes a token scope, for `tokenmill scope add` and for the client that a first start makes.
import { randomUUID } from 'node:crypto'
import { grantScope } from '../../src/acts/grants.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import type { Store } from '../../src/store/pool.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'
import { actor } from '../terminal.ts'

/** Inserts a scope and its audit row. */
export async function makeScope(
  { store, ring }: { store: Store; ring: KeyRing },
  scope: Omit<scopes.NewScope, 'tokenScope' | 'autoProvision' | 'keepBilling'> &
    Partial<Pick<scopes.Scope, 'autoProvision' | 'keepBilling'>>,
): Promise<scopes.NewScope> {
  const made = { tokenScope: randomUUID(), autoProvision: false, keepBilling: false, ...scope }
  await store.transaction(async db => {
    await scopes.insert(db, made)
    await grantScope(db, ring, made)
    await audits.insert(db, { actor: actor(), action: 'scope.add', subject: made.tokenScope, detail: shownScope(made) })
  })
  return made
}

/** A scope, as commands and the audit show it. */
export function shownScope(scope: scopes.NewScope) {
  return {
    token_scope: scope.tokenScope,
    entity_id: scope.entityId,
    par: scope.par,
    network_tokens: scope.networkTokens,
    requestor: scope.requestor,
    auto_provision: scope.autoProvision,
    bin_digits: scope.binDigits,
    keep_billing: scope.keepBilling,
  }
}
