// `tokenmill scope`: token scopes. A card has one token in each scope.
import { randomUUID } from 'node:crypto'
import { grantScope } from '../../src/acts/grants.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import type { Store } from '../../src/store/pool.ts'
import type { KeyRing } from '../../src/vault/key-ring.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, openVault, withSession } from '../open/open.ts'
import { actor, facts, moment, print, type Terminal, table } from '../terminal.ts'

interface AddOptions extends JsonOption {
  entity: string
  par?: boolean
  networkTokens?: boolean
  auto?: boolean
  requestor: scopes.Requestor
  binDigits: '6' | '8'
  keepBilling?: boolean
}

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

export function add(terminal: Terminal, options: AddOptions): Promise<void> {
  if (options.auto && !options.networkTokens && !options.par)
    throw new Stop('--auto needs --network-tokens or --par', EXIT.usage)
  return withSession(terminal, async session => {
    const made = await makeScope(await openVault(session), {
      entityId: options.entity,
      par: options.par ?? false,
      networkTokens: options.networkTokens ?? false,
      requestor: options.requestor,
      autoProvision: options.auto ?? false,
      binDigits: options.binDigits === '6' ? 6 : 8,
      keepBilling: options.keepBilling ?? false,
    })
    print(terminal, options, shownScope(made), facts({ token_scope: made.tokenScope }))
  })
}

export function list(terminal: Terminal, options: JsonOption & { entity?: string }): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const found = await scopes.list(store, options.entity ?? null)
    const rows = found.map(scope => [
      scope.tokenScope,
      scope.entityId,
      [
        scope.par && 'PAR',
        scope.networkTokens && 'network tokens',
        scope.autoProvision && 'auto',
        scope.keepBilling && 'billing addresses',
      ]
        .filter(Boolean)
        .join(', ') || '-',
      scope.requestor,
      `${scope.binDigits}`,
      moment(scope.createdAt),
    ])
    const shown = found.map(scope => ({ ...shownScope(scope), created_at: moment(scope.createdAt) }))
    print(terminal, options, shown, table(['TOKEN_SCOPE', 'ENTITY', 'SUPPORTS', 'REQUESTOR', 'BIN', 'CREATED'], rows))
  })
}

function shownScope(scope: scopes.NewScope) {
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
