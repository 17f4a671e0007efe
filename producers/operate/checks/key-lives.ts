// Whether the stored lives of the data keys are those that processes go by, and whether the table of keys repeats them.
import { listBackward } from '../../../src/acts/key/restore-lives.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as keyLives from '../../../src/store/access/key-lives.ts'
import type { Db } from '../../../src/store/pool.ts'
import { type KeyLife, type KeyLives, readLives } from '../../../src/vault/ring/key-lives.ts'
import { type KnownLives, LIVES_TROUBLE } from '../../../src/vault/ring/known-lives.ts'
import { critical, unknown, type Verdict, warning, well } from '../check.ts'

export interface KeyLivesSources {
  /** Undefined on a host without a key-encryption key. */
  lives: (() => Promise<KnownLives>) | undefined
}

const SHOWN_MAX = 5
const REMEDY =
  'if a backup was restored or a standby promoted: `tokenmill key restored`; else find out who writes to the database, and bring the row back from a backup'

export async function askKeyLives({
  store,
  lives: open,
}: KeyLivesSources & { store(): Promise<Db> }): Promise<Verdict> {
  if (!open) return unknown('this host has no key-encryption key; ask where workers run')
  const lives = await open()
  const known = await lives.read()
  const trouble = lives.trouble()
  const told = await dataKeys.list(await store())
  const other = known.keys.filter(key => !isRepeated(key, told))
  if (trouble) {
    const back = listBackward(known, await storedLives(await store()))
    const differs = back.length > 0 ? `, in which differ: ${shown(back.map(({ key }) => key))}` : ''
    return critical(`${LIVES_TROUBLE[trouble]}; processes go by epoch ${known.epoch}, as before${differs}`, REMEDY)
  }
  if (other.length > 0)
    return warning(
      `the table data_key says something else of ${shown(other.map(nameOf))}; processes go by the proved row`,
      'find out who writes to the database; the next act on these keys writes the table anew',
    )
  return well(`proved by the key-encryption key, epoch ${known.epoch}`)
}

const nameOf = ({ purpose, version, state }: KeyLife) => `${purpose}/${version} (${state})`

function shown(names: readonly string[]): string {
  const more = names.length > SHOWN_MAX ? ` and ${names.length - SHOWN_MAX} more` : ''
  return `${names.slice(0, SHOWN_MAX).join(', ')}${more}`
}

/** What the stored row says, whoever wrote it. */
async function storedLives(db: Db): Promise<Pick<KeyLives, 'keys'>> {
  const row = await keyLives.find(db)
  try {
    return row ? readLives(row) : { keys: [] }
  } catch {
    return { keys: [] }
  }
}

function isRepeated(key: KeyLife, told: readonly dataKeys.DataKeyLife[]): boolean {
  const row = told.find(({ purpose, version }) => purpose === key.purpose && version === key.version)
  if (!row) return false
  return (
    row.state === key.state &&
    (row.compromisedAt !== null) === (key.compromised !== undefined) &&
    (row.exposedAt !== null) === (key.exposed === true) &&
    (row.compromiseEndedAt !== null) === (key.ended === true)
  )
}
