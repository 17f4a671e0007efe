// `tokenmill key backup`: splits the key-encryption key of this installation into shares, one file for each custodian.
// It refuses a key that isn't in a file.
import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { perform } from '../../../src/acts/act.ts'
import * as installation from '../../../src/store/installation.ts'
import { readKekFile } from '../../../src/vault/kek/file.ts'
import { joinShares, splitKey } from '../../../src/vault/shares/key-shares.ts'
import { HEADING, isUnreadable, type KeyShare, linesOf, readShare } from '../../../src/vault/shares/share-text.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { findKekPath, findKeks } from '../../open/kek.ts'
import { readArgumentFile, writePrivate } from '../../open/key-files.ts'
import { openCommandStore, type Session, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { facts, print, say, type Terminal } from '../../terminal.ts'

interface Options extends JsonOption, OperatorOptions {
  shares: number
  of: number
  out: string
}

export function backup(terminal: Terminal, options: Options): Promise<void> {
  const { shares: threshold, of } = options
  if (threshold > of)
    throw new Stop(`--shares ${threshold} is more than --of ${of}: nobody could restore it`, EXIT.usage)
  return withSession(terminal, async session => {
    await makeFolder(options.out)
    const { store, database } = await openCommandStore(session)
    const { kekId, path } = await findKekFile(session, database.embedded, await installation.get(store))
    const deed = { action: 'kek.backup', subject: kekId }
    const by = await byOf(deed, options, store)
    const shares = await splitKey(await readKekFile(path), { threshold, of })
    const files = shares.map(share => ({ share, path: join(resolve(options.out), fileName(share)) }))
    const setId = shares[0]?.setId ?? ''
    // The files are written before the commit, so that no row tells of shares that weren't written.
    await withFiles(files, async () => {
      await perform(store, deed, by, async () => ({ done: setId, detail: { set: setId, threshold, of } }))
    })
    const value = { kek_id: kekId, set: setId, threshold, of, files: files.map(file => file.path) }
    const made = files.map(file => `made   ${file.path}`)
    print(terminal, options, value, [
      ...facts({ key: kekId, set: setId, restore: `any ${threshold} of ${of}` }),
      ...made,
    ])
    say(
      terminal,
      `Every share was read back, and with its neighbours it gave ${kekId}. Give each to another custodian, then remove these files; keep shares apart from the backups of the database.`,
    )
  })
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    throw new Stop(`--out: ${path} can't be made or is no folder (${error.code})`)
  })
}

async function findKekFile(
  { config }: Session,
  embedded: boolean,
  known: { kekId: string },
): Promise<{ kekId: string; path: string }> {
  const { current } = await findKeks(config, embedded, known)
  const path = await findKekPath(config, embedded, current.id)
  if (path === undefined)
    throw new Stop(
      `${current.id} is in no file: make its backup where it is kept, by the means of that token or service.`,
    )
  return { kekId: current.id, path }
}

interface ShareFile {
  share: KeyShare
  path: string
}

/** Writes the files, proves them, and then runs `work`. If anything fails, the files that were written are removed. */
async function withFiles(files: readonly ShareFile[], work: () => Promise<void>): Promise<void> {
  const written: string[] = []
  try {
    for (const { share, path } of files) {
      await writePrivate(path, fileText(share))
      written.push(path)
    }
    await prove(files)
    await work()
  } catch (error) {
    for (const path of written) await rm(path, { force: true })
    throw error
  }
}

/** Reads the files back and joins each share with the ones after it: so each share is proved to restore the key. */
async function prove(files: readonly ShareFile[]): Promise<void> {
  const read = await Promise.all(
    files.map(async ({ path }) => ({ name: path, share: readShare(await readArgumentFile(path)) })),
  )
  const whole = read.flatMap(({ name, share }) => (isUnreadable(share) ? [] : [{ name, share }]))
  for (const at of whole.keys()) {
    const neighbours = [...whole.slice(at), ...whole.slice(0, at)].slice(0, whole[at]?.share.threshold)
    if (whole.length < files.length || 'refused' in (await joinShares(neighbours)))
      throw new Stop('a share that was read back does not restore the key; the files were removed, so try again')
  }
}

const fileName = ({ kekId, setId, index, of }: KeyShare) => `${kekId}-${setId.slice(0, 4)}-share-${index}-of-${of}.txt`

function fileText(share: KeyShare): string {
  const { index, of, kekId, threshold, setId } = share
  return [
    HEADING,
    `# Share ${index} of ${of} of the key-encryption key ${kekId}. Any ${threshold} of the ${of} restore it.`,
    `# Set ${setId}. Keep this share apart from the others and from the backups of the database.`,
    '# To restore: tokenmill key restore --out FILE SHARE_FILE... (without files: typed, and not shown).',
    ...linesOf(share),
    '',
  ].join('\n')
}
