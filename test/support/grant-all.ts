// Codes every row that grants rights, for tests that write such rows by SQL.
import { GRANT_LISTS } from '../../cli/open/grant-lists.ts'
import { listGrants } from '../../src/acts/grants.ts'
import type { Db } from '../../src/store/pool.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'

export async function grantAll(db: Db, ring: Pick<KeyRing, 'grantMac'>): Promise<void> {
  const rows = (await listGrants(db, GRANT_LISTS)).filter(row => !row.isRevoked)
  for (const row of rows) {
    const { mac, keyVersion } = ring.grantMac(row.text)
    await row.save(db, mac, keyVersion)
  }
}
