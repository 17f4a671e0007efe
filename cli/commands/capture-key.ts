// `tokenmill capture-key add|list|show`: the key pairs to which callers encrypt cards. Only public halves are ever
// printed, and with them what the installation signed about them.
import { insertKey, state } from '../../src/acts/capture-keys.ts'
import { systemClock } from '../../src/clock.ts'
import { ConfigError } from '../../src/config.ts'
import { Secret } from '../../src/secret.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import { importCaptureKey, makeCaptureKey } from '../../src/vault/capture/capture-key.ts'
import { kidOf, withStatement } from '../../src/vault/capture/statement.ts'
import type { PrivateHalves } from '../../src/vault/private-half.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openStating } from '../open/capture-keys.ts'
import { readArgumentFile } from '../open/key-files.ts'
import { openCommandStore, openVault, withSession } from '../open/open.ts'
import { actor, moment, print, type Terminal, table } from '../terminal.ts'

interface AddOptions extends JsonOption {
  entity: string
  type?: captureKeys.CaptureKeyType
  import?: string
}

export function add(terminal: Terminal, alias: string, options: AddOptions): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const stating = await openStating(session, vault)
    const passphrase = terminal.env['TOKENMILL_PGP_PASSPHRASE']
    const key =
      options.import === undefined
        ? await makeCaptureKey(options.type ?? 'jwe-rsa', alias, vault.halves)
        : await importFile(options.import, alias, options.type, vault.halves, passphrase)
    const detail = { entity_id: options.entity, type: key.type, imported: options.import !== undefined }
    const added = await vault.store.transaction(async db => {
      const inserted = await insertKey(db, stating, { ...key, entityId: options.entity }, systemClock())
      if (!inserted)
        throw new Stop(
          `The alias ${alias} is or was in use; choose another, or add a key to its line with \`tokenmill capture-key rotate ${alias}\`.`,
        )
      await audits.insert(db, { actor: actor(), action: 'capture-key.add', subject: alias, detail })
      return inserted
    })
    const publicKey = withStatement(added.publicKey, added.statement)
    const shown = { alias, number: added.number, entity_id: options.entity, type: key.type, public_key: publicKey }
    print(terminal, options, shown, publicKey.trimEnd().split('\n'))
  })
}

export async function importFile(
  path: string,
  alias: string,
  type: captureKeys.CaptureKeyType | undefined,
  halves: PrivateHalves,
  passphrase: string | undefined,
) {
  const text = await readArgumentFile(path)
  try {
    return await importCaptureKey(
      new Secret(text),
      alias,
      type,
      halves,
      passphrase ? new Secret(passphrase) : undefined,
    )
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const hint = passphrase ? '' : ' (set TOKENMILL_PGP_PASSPHRASE if the key has a passphrase)'
    throw new Stop(`${path}: ${error.message}${hint}`, EXIT.usage)
  }
}

export function list(terminal: Terminal, options: JsonOption & { entity?: string }): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const found = await captureKeys.list(store, options.entity ?? null)
    const shown = await Promise.all(
      found.map(async key => ({
        alias: key.alias,
        number: key.number,
        kid: await kidOf(key.publicKey).catch(() => null),
        entity_id: key.entityId,
        type: key.type,
        state: key.state,
        created_at: moment(key.createdAt),
        last_used_at: key.lastUsedAt === null ? null : moment(key.lastUsedAt),
        last_used_by: key.lastUsedBy,
        retired_at: key.retiredAt === null ? null : moment(key.retiredAt),
        destroyed_at: key.destroyedAt === null ? null : moment(key.destroyedAt),
        // A key without a statement isn't shown; `show` checks and signs it.
        public_key: key.statement === null ? null : withStatement(key.publicKey, key.statement),
      })),
    )
    const rows = found.map(key => [
      ...[captureKeys.captureKeyName(key), key.type, key.state, key.entityId, moment(key.createdAt)],
      ...[key.lastUsedAt === null ? '-' : moment(key.lastUsedAt), key.lastUsedBy ?? '-', moment(key.retiredAt)],
    ])
    const headings = ['KEY', 'TYPE', 'STATE', 'ENTITY', 'CREATED', 'LAST USED', 'BY', 'UNTIL']
    print(terminal, options, shown, table(headings, rows))
  })
}

/** Prints the key that senders are to encrypt to, with a statement of the key that signs now. */
export function show(terminal: Terminal, alias: string, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const line = await captureKeys.findLine(vault.store, alias)
    const newest = line[0]
    if (!newest) throw new Stop('There is no such capture key; `tokenmill capture-key list` lists them.')
    const handedOut = await captureKeys.listHandedOut(vault.store, newest.entityId)
    const found = handedOut.find(key => key.alias === alias)
    if (!found) throw new Stop(`The capture key ${alias} is ${newest.state.toLowerCase()}; use one that is active.`)
    const key = await state(vault.store, await openStating(session, vault), found, systemClock())
    const publicKey = withStatement(key.publicKey, key.statement)
    const { number, entityId, type } = key
    const shown = { alias, number, entity_id: entityId, type, public_key: publicKey }
    print(terminal, options, shown, publicKey.trimEnd().split('\n'))
  })
}
