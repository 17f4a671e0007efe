// `tokenmill scheme`: shows scheme tokens to the operator, first of all those with an outstanding call. It calls no
// network.
import * as schemeIntents from '../../src/store/provider/scheme-intents.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import { formatReuseToken } from '../../src/token/token.ts'
import type { JsonOption } from '../command.ts'
import { openCommandStore, withSession } from '../open/open.ts'
import { moment, print, say, type Terminal, table } from '../terminal.ts'

interface ListOptions extends JsonOption {
  open?: boolean
  limit: number
}

export function list(terminal: Terminal, options: ListOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const found = await (options.open ? storedSchemes.listOpen : storedSchemes.listLatest)(store, options.limit)
    const shown = found.map(row => ({
      // A third party's reference is the reuse token.
      reuse_token: row.thirdParty ? row.reference : formatReuseToken(row.tokenId),
      provision: row.provisionId,
      network: row.provider,
      state: row.state,
      open: openOf(row) ?? null,
      attempts: row.attempts,
      next_at: row.dueAt === null ? null : moment(row.dueAt),
      since: moment(row.retiredAt ?? row.updatedAt),
    }))
    const rows = shown.map(row => [
      ...[row.reuse_token ?? '-', row.provision, row.network, row.state, row.open ?? '-', String(row.attempts)],
      ...[row.next_at ?? '-', row.since],
    ])
    const headings = ['REUSE_TOKEN', 'PROVISION', 'NETWORK', 'STATE', 'OPEN', 'ATTEMPTS', 'NEXT', 'SINCE']
    print(terminal, options, shown, table(headings, rows))
    const owed = await schemeIntents.countOwed(store)
    if (owed.rows > 0) say(terminal, `tokenmill: ${owed.rows} reversals are under way`)
  })
}

/** One word for the call that the row still waits for. */
function openOf({ retiredAt, state, dueAt }: StoredScheme): string | undefined {
  if (state === 'DELETED' || state === 'VOID') return undefined
  if (retiredAt !== null) return 'delete'
  if (state === 'PENDING') return 'provision'
  return dueAt === null ? undefined : 'ask'
}
