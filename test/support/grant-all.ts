// Codes every row that grants rights, for tests that write such rows by SQL.
import { listGrants } from '../../src/acts/grants.ts'
import type { Db } from '../../src/store/pool.ts'
import type { KeyRing } from '../../src/vault/key-ring.ts'

export async function grantAll(db: Db, ring: Pick<KeyRing, 'grantMac'>): Promise<void> {
  const rows = (await listGrants(db)).filter(row => !row.isRevoked)
  for (const row of rows) {
    const { mac, keyVersion } = ring.grantMac(row.text)
    await row.save(db, mac, keyVersion)
  }
}
