// `tokenmill display`: adds wall displays of the page Now, lists them and revokes them. The acts are in src/acts/display.ts.
import { ADD_DISPLAY, addDisplay, REVOKE_DISPLAY, revokeDisplay } from '../../../src/acts/display.ts'
import { systemClock } from '../../../src/clock.ts'
import type { Display } from '../../../src/store/person/displays.ts'
import * as displays from '../../../src/store/person/displays.ts'
import type { Db } from '../../../src/store/pool.ts'
import { readRelyingParty } from '../../../src/vault/passkey/relying-party.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openCommandStore, openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, say, type Terminal, table } from '../../terminal.ts'

type ActOptions = JsonOption & OperatorOptions

export function add(terminal: Terminal, name: string, options: ActOptions & { entity?: string[] }): Promise<void> {
  return withSession(terminal, async session => {
    const { origin } = readRelyingParty(terminal.env)
    const { store, ring } = await openVault(session)
    const entities = options.entity ? [...new Set(options.entity)] : null
    const by = await byOf({ action: ADD_DISPLAY, subject: name }, options, store, ring)
    const ended = await addDisplay(store, { name, entities }, by)
    if ('refused' in ended) throw new Stop('A display has this name. Revoke it first, or choose another name.')
    const { displayId, value, expiresAt } = ended.done
    const link = `${origin}/display/open#${value}`
    print(terminal, options, { display_id: displayId, name, entities, link, expires_at: moment(expiresAt) }, link)
    say(
      terminal,
      `It is shown this once. Open it on the screen; whoever has it sees the same figures until ${moment(expiresAt)}, or until \`tokenmill display revoke\`.`,
    )
  })
}

export function list(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const now = systemClock()
    const shown = (await displays.list(store)).map(display => ({
      display_id: display.displayId,
      name: display.name,
      state: stateOf(display, now),
      entities: display.entities,
      made_by: display.madeBy,
      created_at: moment(display.createdAt),
      expires_at: moment(display.expiresAt),
      revoked_at: display.revokedAt === null ? null : moment(display.revokedAt),
    }))
    const rows = shown.map(display => [
      ...[display.display_id, display.name, display.state],
      ...[display.entities === null ? 'all' : `${display.entities.length}`, display.created_at, display.expires_at],
    ])
    print(terminal, options, shown, table(['DISPLAY', 'NAME', 'STATE', 'ENTITIES', 'CREATED', 'ENDS'], rows))
  })
}

function stateOf({ revokedAt, expiresAt }: Display, now: number): string {
  if (revokedAt !== null) return 'revoked'
  return expiresAt <= now ? 'over' : 'live'
}

export function revoke(terminal: Terminal, word: string, options: ActOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const { displayId, name } = await findDisplay(store, word)
    const by = await byOf({ action: REVOKE_DISPLAY, subject: displayId }, options, store, ring)
    const ended = await revokeDisplay(store, { displayId, name }, by)
    if ('refused' in ended) throw new Stop('This display was revoked before.')
    print(terminal, options, { display_id: displayId, revoked: true }, `${name} is revoked`)
  })
}

/** By id, or by the name of one that isn't revoked. */
async function findDisplay(db: Db, word: string): Promise<Display> {
  const all = await displays.list(db)
  const found =
    all.find(({ displayId }) => displayId === word.toLowerCase()) ??
    all.find(({ name, revokedAt }) => name === word && revokedAt === null)
  if (!found) throw new Stop('There is no such display; `tokenmill display list` lists them.')
  return found
}
