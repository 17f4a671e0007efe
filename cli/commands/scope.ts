// `tokenmill scope`: token scopes. A card has one token in each scope.
import * as scopes from '../../src/store/access/scopes.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { makeScope, shownScope } from '../open/make-scope.ts'
import { openCommandStore, openVault, withSession } from '../open/open.ts'
import { facts, moment, print, type Terminal, table } from '../terminal.ts'

interface AddOptions extends JsonOption {
  entity: string
  par?: boolean
  networkTokens?: boolean
  auto?: boolean
  requestor: scopes.Requestor
  binDigits: '6' | '8'
  keepBilling?: boolean
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
