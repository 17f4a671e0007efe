// `tokenmill scope`: token scopes; a card has one token in each.
import { randomUUID } from 'node:crypto'
import { type Command, Option } from 'commander'
import * as audits from '../../src/store/access/audits.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import type { Store } from '../../src/store/pool.ts'
import { addCommand, addFamily, type JsonOption, readUuid } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, withSession } from '../open/open.ts'
import { actor, facts, moment, print, type Terminal, table } from '../terminal.ts'

interface AddOptions extends JsonOption {
  entity: string
  par?: boolean
  networkTokens?: boolean
  auto?: boolean
  requestor: scopes.Requestor
  binDigits: '6' | '8'
}

export function registerScope(program: Command, terminal: Terminal): void {
  const family = addFamily(program, 'scope', 'token scopes: a card has one token in each')
  addCommand(family, 'add', 'makes a token scope and prints its id')
    .requiredOption('--entity <uuid>', 'the merchant entity that owns it', readUuid)
    .option('--par', 'support payment account references')
    .option('--network-tokens', 'support scheme (network) tokens')
    .option('--auto', 'request a scheme token for each new token; with --network-tokens or --par')
    .addOption(
      new Option('--requestor <who>', 'the token requestor of scheme tokens')
        .choices(scopes.REQUESTORS)
        .default('MERCHANT'),
    )
    .addOption(
      new Option('--bin-digits <n>', 'number of BIN digits that are stored and shown').choices(['6', '8']).default('8'),
    )
    .action((options: AddOptions) => add(terminal, options))
  addCommand(family, 'list', 'lists token scopes')
    .option('--entity <uuid>', 'list only those of this entity', readUuid)
    .action((options: JsonOption & { entity?: string }) => list(terminal, options))
}

/** A new scope and its audit row. */
export async function makeScope(
  store: Store,
  scope: Omit<scopes.Scope, 'tokenScope' | 'createdAt' | 'autoProvision'> & { autoProvision?: boolean },
): Promise<Omit<scopes.Scope, 'createdAt'>> {
  const made = { tokenScope: randomUUID(), autoProvision: false, ...scope }
  await store.transaction(async db => {
    await scopes.insert(db, made)
    await audits.insert(db, { actor: actor(), action: 'scope.add', subject: made.tokenScope, detail: shownScope(made) })
  })
  return made
}

function add(terminal: Terminal, options: AddOptions): Promise<void> {
  if (options.auto && !options.networkTokens && !options.par)
    throw new Stop('--auto needs --network-tokens or --par', EXIT.usage)
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const made = await makeScope(store, {
      entityId: options.entity,
      par: options.par ?? false,
      networkTokens: options.networkTokens ?? false,
      requestor: options.requestor,
      autoProvision: options.auto ?? false,
      binDigits: options.binDigits === '6' ? 6 : 8,
    })
    print(terminal, options, shownScope(made), facts({ token_scope: made.tokenScope }))
  })
}

function list(terminal: Terminal, options: JsonOption & { entity?: string }): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const found = await scopes.list(store, options.entity ?? null)
    const rows = found.map(scope => [
      scope.tokenScope,
      scope.entityId,
      [scope.par && 'PAR', scope.networkTokens && 'network tokens', scope.autoProvision && 'auto']
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

function shownScope(scope: Omit<scopes.Scope, 'createdAt'>) {
  return {
    token_scope: scope.tokenScope,
    entity_id: scope.entityId,
    par: scope.par,
    network_tokens: scope.networkTokens,
    requestor: scope.requestor,
    auto_provision: scope.autoProvision,
    bin_digits: scope.binDigits,
  }
}
