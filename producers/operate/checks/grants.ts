// Whether tokenmill itself wrote every row that grants rights. Workers treat other rows as absent.
import { type ListGrants, listUngranted } from '../../../src/acts/grants.ts'
import type { Db } from '../../../src/store/pool.ts'
import { count } from '../../../src/units.ts'
import type { KeyRing } from '../../../src/vault/ring/key-ring.ts'
import { critical, unknown, type Verdict, well } from '../check.ts'

export interface GrantSources {
  /** Undefined on a host without a key-encryption key. */
  ring: (() => Promise<KeyRing>) | undefined
  /** All rows that grant rights. */
  grants: readonly ListGrants[]
}

const SHOWN_MAX = 5

export async function askGrants({ store, ring, grants }: GrantSources & { store(): Promise<Db> }): Promise<Verdict> {
  if (!ring) return unknown('this host has no key-encryption key; ask where workers run')
  const found = await listUngranted(await store(), await ring(), grants)
  if (found.length === 0) return well('tokenmill wrote every client, key and scope')
  const more = found.length > SHOWN_MAX ? ` and ${found.length - SHOWN_MAX} more` : ''
  const says = `${count(found.length, 'row')} not written by tokenmill, or changed since: ${found.slice(0, SHOWN_MAX).join(', ')}${more}`
  return critical(says, 'find out who writes to the database; workers ignore these rows')
}
