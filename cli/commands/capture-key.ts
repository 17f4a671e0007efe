// `tokenmill capture-key`: the key pairs to which callers encrypt cards. Only public halves are ever printed.
import { ConfigError } from '../../src/config.ts'
import { Secret } from '../../src/secret.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import { importCaptureKey, makeCaptureKey } from '../../src/vault/capture.ts'
import type { KeyProvider } from '../../src/vault/kek.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { readArgumentFile } from '../open/key-files.ts'
import { openCommandStore, openVault, withSession } from '../open/open.ts'
import { actor, moment, print, say, type Terminal, table } from '../terminal.ts'

interface AddOptions extends JsonOption {
  entity: string
  type?: captureKeys.CaptureKeyType
  import?: string
}

export function add(terminal: Terminal, alias: string, options: AddOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store, kek } = await openVault(session)
    const passphrase = terminal.env['TOKENMILL_PGP_PASSPHRASE']
    const key =
      options.import === undefined
        ? await makeCaptureKey(options.type ?? 'jwe-rsa', alias, kek)
        : await importFile(options.import, alias, options.type, kek, passphrase)
    const detail = { entity_id: options.entity, type: key.type, imported: options.import !== undefined }
    await store.transaction(async db => {
      if (!(await captureKeys.insert(db, { ...key, entityId: options.entity })))
        throw new Stop(`The alias ${alias} is or was in use; choose another, because an alias is never used again.`)
      await audits.insert(db, { actor: actor(), action: 'capture-key.add', subject: alias, detail })
    })
    const shown = { alias, entity_id: options.entity, type: key.type, public_key: key.publicKey }
    print(terminal, options, shown, key.publicKey.trimEnd())
  })
}

async function importFile(
  path: string,
  alias: string,
  type: captureKeys.CaptureKeyType | undefined,
  kek: KeyProvider,
  passphrase: string | undefined,
) {
  const text = await readArgumentFile(path)
  try {
    return await importCaptureKey(new Secret(text), alias, type, kek, passphrase ? new Secret(passphrase) : undefined)
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
    const shown = found.map(key => ({
      alias: key.alias,
      entity_id: key.entityId,
      type: key.type,
      state: key.state,
      created_at: moment(key.createdAt),
      retired_at: key.retiredAt === null ? null : moment(key.retiredAt),
      destroyed_at: key.destroyedAt === null ? null : moment(key.destroyedAt),
      public_key: key.publicKey,
    }))
    const rows = found.map(key => [key.alias, key.type, key.state, key.entityId, moment(key.createdAt)])
    print(terminal, options, shown, table(['ALIAS', 'TYPE', 'STATE', 'ENTITY', 'CREATED'], rows))
  })
}

export function retire(terminal: Terminal, alias: string, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const key = await captureKeys.find(store, alias)
    if (!key) throw new Stop('There is no such capture key; `tokenmill capture-key list` lists them.')
    if (key.state !== 'ACTIVE') throw new Stop(`This capture key was already retired at ${moment(key.retiredAt)}.`)
    await store.transaction(async db => {
      await captureKeys.retire(db, alias)
      await audits.insert(db, { actor: actor(), action: 'capture-key.retire', subject: alias })
    })
    const rest = (await captureKeys.list(store, key.entityId)).filter(({ state }) => state === 'ACTIVE')
    if (rest.length === 0)
      say(terminal, 'The entity has no active capture key left; make one with `tokenmill capture-key add`.')
    print(
      terminal,
      options,
      { alias, state: 'RETIRED' },
      `${alias} is retired; its private half is destroyed in 8 days`,
    )
  })
}
