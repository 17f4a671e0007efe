// `tokenmill key restore`: makes the file of a key-encryption key from its shares. The shares come from files, or are
// typed without being shown; never from arguments. It changes nothing in the database but for the audit row.
import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { perform } from '../../../src/acts/act.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { assertSchema } from '../../../src/store/schema.ts'
import { makeKekFile } from '../../../src/vault/kek/file.ts'
import { type JoinRefusal, joinShares, type NamedShare } from '../../../src/vault/shares/key-shares.ts'
import { isUnreadable, type KeyShare, readShare, type Unreadable } from '../../../src/vault/shares/share-text.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { readArgumentFile } from '../../open/key-files.ts'
import { openDatabase, type Session, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { readTypedShares } from '../../open/typed-shares.ts'
import { facts, print, say, type Terminal } from '../../terminal.ts'

interface Options extends JsonOption, OperatorOptions {
  out: string
  offline?: boolean
}

export function restore(terminal: Terminal, files: readonly string[], options: Options): Promise<void> {
  if (options.offline && options.operator !== undefined)
    throw new Stop('--operator: the operator is proved by the database, which --offline does not open', EXIT.usage)
  return withSession(terminal, async session => {
    const shares = files.length > 0 ? await readShareFiles(files) : await readTypedShares(terminal)
    const joined = await joinShares(shares)
    if ('refused' in joined) throw new Stop(refusalText(joined, shares))
    const { key, kekId } = joined
    const path = resolve(options.out)
    const store = options.offline ? undefined : await openAuditedStore(session)
    if (store) await makeRecorded(store, { kekId, path, shares }, options, () => makeKekFile(path, key))
    else await makeKekFile(path, key)
    const used = store && (await dataKeys.countUnder(store, kekId))
    print(
      terminal,
      options,
      { kek_id: kekId, file: path, recorded: store !== undefined, ...(used !== undefined && { data_keys: used }) },
      facts({ key: kekId, made: path, wraps: used === undefined ? undefined : `${used} data keys of this database` }),
    )
    if (!store) say(terminal, 'No audit row was written: note this ceremony elsewhere.')
    if (used === 0)
      say(terminal, `No data key of this database is wrapped by ${kekId}: it is a former key, or another database's.`)
    say(terminal, 'Then `tokenmill doctor --restore` says whether every key and a sample of the cards open with it.')
  })
}

async function readShareFiles(files: readonly string[]): Promise<NamedShare[]> {
  const read = await Promise.all(files.map(async name => ({ name, share: readShare(await readArgumentFile(name)) })))
  const damaged = read.flatMap(({ name, share }) => (isUnreadable(share) ? [damageText(name, share)] : []))
  if (damaged.length > 0) throw new Stop(damaged.join('; '))
  return read.flatMap(({ name, share }) => (isUnreadable(share) ? [] : [{ name, share }]))
}

function damageText(name: string, { lines }: Unreadable): string {
  if (lines.length === 6) return `${name} is not a share of a key`
  if (lines.length === 0) return `${name} is damaged: its checksum is wrong, though each line's check is right`
  return `${name} is damaged in line ${lines.join(', ')}`
}

function refusalText({ refused, names, threshold }: JoinRefusal, shares: readonly NamedShare[]): string {
  switch (refused) {
    case 'mixed':
      return `these shares are of different sets, and only shares of one set restore a key: ${shares.map(whose).join('; ')}`
    case 'twice':
      return `${names.join(' and ')} are the same share; bring ${threshold} different ones`
    case 'too_few':
      return `${names.length} of the ${threshold} shares that are needed: bring ${threshold - names.length} more of this set`
    case 'another_key':
      return `these shares do not give ${shares[0]?.share.kekId}, which they name: one of them was forged; try others of the set, one by one`
  }
}

const whose = ({ name, share }: NamedShare) => `${name} is ${shareText(share)}`
const shareText = ({ index, of, kekId, setId }: KeyShare) => `share ${index} of ${of} of ${kekId}, set ${setId}`

/** Opens the store without upgrading an embedded one, because its keys can't be opened yet. */
async function openAuditedStore(session: Session): Promise<Store> {
  const { url } = await openDatabase(session)
  const store = openStore(url, { log: session.log, connectionsMax: 2, application: 'tokenmill cli' })
  session.lifetime.onClose('store', () => store.close())
  await assertSchema(store)
  return store
}

interface Restored {
  kekId: string
  path: string
  shares: readonly NamedShare[]
}

async function makeRecorded(
  store: Store,
  { kekId, path, shares }: Restored,
  options: Options,
  make: () => Promise<void>,
): Promise<void> {
  const deed = { action: 'kek.restore', subject: kekId }
  const by = await byOf(deed, options, store)
  const detail = { set: shares[0]?.share.setId, shares: shares.map(({ share }) => share.index) }
  let made = false
  try {
    await perform(store, deed, by, async () => {
      await make()
      made = true
      return { done: undefined, detail }
    })
  } catch (error) {
    if (made) await rm(path, { force: true })
    throw error
  }
}
