// The vault's data keys, each wrapped by the key-encryption key (KEK). The reader role may not select them.
import type { Db } from '../pool.ts'

interface DataKey {
  purpose: string
  version: number
  wrapped: Buffer
  state: 'ACTIVE' | 'DECRYPT_ONLY' | 'DESTROYED'
}

export async function findAll(db: Db): Promise<DataKey[]> {
  const { rows } = await db.query<DataKey>({
    text: 'select purpose, version, wrapped, state from tokenmill.data_key order by purpose, version',
  })
  return rows
}

/** Inserts a key. False if a key with this purpose and version exists, which stays as it is. */
export async function insert(db: Db, key: Omit<DataKey, 'state'>): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.data_key (purpose, version, wrapped) values ($1, $2, $3) on conflict (purpose, version) do nothing`,
    values: [key.purpose, key.version, key.wrapped],
  })
  return count === 1
}
