// About which expiring keys an event was written, so that there is one event before each key's date and one at the
// date.
import { texts } from '../columns.ts'
import type { Db } from '../pool.ts'

/** SOON: its date is near. OVER: its date has come. */
export type KeyStage = 'SOON' | 'OVER'

export interface KeyNotice {
  /** The key's name, such as `seal/1`. */
  key: string
  stage: KeyStage
}

/**
 * Writes the notices that weren't written before, and returns those. Another transaction that writes the same ones waits
 * for this one. `notices` are in the order of their keys, so that no two wait for each other.
 */
export async function insertNew(db: Db, notices: readonly KeyNotice[]): Promise<KeyNotice[]> {
  const { rows } = await db.query<KeyNotice>({
    text: `insert into tokenmill.key_notice (key, stage)
select key, stage
from unnest($1::text[], $2::text[]) as v (key, stage)
on conflict do nothing
returning key, stage`,
    values: [texts(notices.map(({ key }) => key)), texts(notices.map(({ stage }) => stage))],
  })
  return rows
}
