// Which readers of results say that they know the announced signing key. A reader is one results queue of a client; what
// it says is a claim of its jobs.
import type { Db } from '../pool.ts'

export interface Reader {
  clientId: string
  /** Null for the client's queue without a name. */
  replyTo: string | null
}

/** Records that the reader knows the key; does nothing unless this key is announced. */
export async function acknowledge(db: Db, kid: string, { clientId, replyTo }: Reader): Promise<void> {
  await db.query({
    text: `insert into tokenmill.signing_key_reader (kid, client_id, reply_to)
select kid, $2, $3
from tokenmill.signing_key
where kid = $1 and state = 'ANNOUNCED'
on conflict (kid, client_id, reply_to) do update
set acknowledged_at = now()`,
    values: [kid, clientId, replyTo ?? ''],
  })
}

/** Removes what readers said of a key that is no longer announced. */
export async function forget(db: Db, kid: string): Promise<void> {
  await db.query({
    text: `delete from tokenmill.signing_key_reader
where kid = $1`,
    values: [kid],
  })
}

export async function list(db: Db, kid: string): Promise<Reader[]> {
  const { rows } = await db.query<Reader>({
    text: `select client_id as "clientId", nullif(reply_to, '') as "replyTo"
from tokenmill.signing_key_reader
where kid = $1
order by client_id, reply_to`,
    values: [kid],
  })
  return rows
}
