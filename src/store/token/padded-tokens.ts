// Counts the tokens of card numbers with zeros in front, which no card has. They were made before such numbers were refused.
import { type Db, limitStatements } from '../pool.ts'

/** A larger table is sampled: to read all of it would take longer than anybody waits. */
const READ_MAX = 1_000_000
const SAMPLE = 200_000
const COUNT_MS_MAX = 2_500

export interface PaddedTokens {
  tokens: number
  /** How many tokens were read, if only a sample was. */
  sampled: number | undefined
}

/** It changes the limits of the transaction in which it is called. */
export async function count(db: Db): Promise<PaddedTokens> {
  await limitStatements(db, COUNT_MS_MAX)
  const { rows: sizes } = await db.query<{ rows: number }>({
    text: `select greatest(reltuples, 0)::bigint as rows
from pg_class
where oid = 'tokenmill.token'::regclass`,
  })
  const rows = sizes[0]?.rows ?? 0
  const isSampled = rows > READ_MAX
  const from = isSampled ? `tokenmill.token tablesample system (${(100 * SAMPLE) / rows})` : 'tokenmill.token'
  const { rows: found } = await db.query<{ tokens: number; read: number }>({
    text: `select count(*) filter (where bin like '0%') as tokens, count(*) as read
from ${from}`,
  })
  const { tokens = 0, read = 0 } = found[0] ?? {}
  return { tokens, sampled: isSampled ? read : undefined }
}
