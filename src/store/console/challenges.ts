// Values that are used once: the challenge of a sign-in, and the hash of the link that `start` prints on the embedded
// engine. Whoever deletes a row has used it.
import type { Db } from '../pool.ts'

/** A challenge of 32 random bytes for one sign-in. */
export async function insertSignIn(db: Db, challenge: Buffer, lastsMs: number): Promise<void> {
  await db.query({
    text: `insert into tokenmill.challenge (challenge, purpose, expires_at)
values ($1, 'sign-in', now() + make_interval(secs => $2 / 1000.0))`,
    values: [challenge, lastsMs],
  })
}

/** False if there is no such challenge, if it is too old, or if it was used. */
export async function useSignIn(db: Db, challenge: Buffer): Promise<boolean> {
  const { count } = await db.query({
    text: `delete from tokenmill.challenge
where challenge = $1 and purpose = 'sign-in' and expires_at > now()`,
    values: [challenge],
  })
  return count === 1
}

/** The link of `start`: SHA-256 of the value by which it is found, and the person whom it signs in. Former links stop working. */
export async function replaceStartLink(
  db: Db,
  { lookupHash, personId, lastsMs }: { lookupHash: Buffer; personId: string; lastsMs: number },
): Promise<void> {
  await db.query({
    text: `delete from tokenmill.challenge
where purpose = 'start'`,
  })
  await db.query({
    text: `insert into tokenmill.challenge (
  challenge,
  purpose,
  person_id,
  expires_at
)
values (
  $1,
  'start',
  $2,
  now() + make_interval(secs => $3 / 1000.0)
)`,
    values: [lookupHash, personId, lastsMs],
  })
}

/** Whether this link works; asking doesn't use it. */
export async function isStartLink(db: Db, lookupHash: Buffer): Promise<boolean> {
  const { rows } = await db.query({
    text: `select
from tokenmill.challenge
where challenge = $1 and purpose = 'start' and expires_at > now()`,
    values: [lookupHash],
  })
  return rows.length === 1
}

/** The person whom the link signs in; undefined if it doesn't work, or was used. */
export async function useStartLink(db: Db, lookupHash: Buffer): Promise<string | undefined> {
  const { rows } = await db.query<{ personId: string }>({
    text: `delete from tokenmill.challenge
where challenge = $1 and purpose = 'start' and expires_at > now()
returning person_id as "personId"`,
    values: [lookupHash],
  })
  return rows[0]?.personId
}

export async function removeOver(db: Db): Promise<void> {
  await db.query({
    text: `delete from tokenmill.challenge
where expires_at < now()`,
  })
}
