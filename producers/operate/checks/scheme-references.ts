// Whether tokenmill itself wrote the names that networks and third parties have for their tokens: a random sample. Workers call
// nobody by another name.
import { randomUUID } from 'node:crypto'
import { Fault } from '../../../src/errors.ts'
import type { Db } from '../../../src/store/pool.ts'
import { isReferenceProved, type StoredScheme } from '../../../src/store/provider/scheme-row.ts'
import * as storedSchemes from '../../../src/store/provider/stored-schemes.ts'
import { count } from '../../../src/units.ts'
import type { KeyRing } from '../../../src/vault/ring/key-ring.ts'
import { critical, unknown, type Verdict, well } from '../check.ts'
import type { GrantSources } from './grants.ts'

const SAMPLE = 400
const SHOWN_MAX = 5
const FIRST = '00000000-0000-0000-0000-000000000000'

export async function askSchemeReferences({
  store,
  ring: open,
}: Pick<GrantSources, 'ring'> & { store(): Promise<Db> }): Promise<Verdict> {
  if (!open) return unknown('this host has no key-encryption key; ask where workers run')
  const [db, ring] = [await store(), await open()]
  const found = await storedSchemes.listNamed(db, randomUUID(), SAMPLE)
  // The sample began near the end of the table.
  if (found.length < SAMPLE) found.push(...(await storedSchemes.listNamed(db, FIRST, SAMPLE - found.length)))
  const rows = [...new Map(found.map(row => [row.provisionId, row])).values()]
  const unproved = rows.filter(row => !isProved(row, ring)).map(({ provisionId }) => provisionId)
  if (unproved.length === 0) return well(`tokenmill wrote ${count(rows.length, 'reference')} of a sample`)
  const more = unproved.length > SHOWN_MAX ? ` and ${unproved.length - SHOWN_MAX} more` : ''
  return critical(
    `${count(unproved.length, 'row')} of scheme_token with a reference not written by tokenmill, or changed since: ${unproved.slice(0, SHOWN_MAX).join(', ')}${more}`,
    'find out who writes to the database, and put the reference back as a backup has it; until then no network is called about these',
  )
}

/** A version of the key that nobody has is as wrong as a wrong seal. */
function isProved(row: StoredScheme, ring: KeyRing): boolean {
  try {
    return isReferenceProved(row, ring)
  } catch (error) {
    if (error instanceof Fault && error.code === 'key_unavailable') return false
    throw error
  }
}
