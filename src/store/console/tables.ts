// What the console and its people have in the database.
import type { Tables } from '../tables.ts'

export const CONSOLE_TABLES: Tables = {
  sql: 'console',
  rights: {
    // Retention removes old ones.
    act_nonce: `select, insert,
  update (audit_id), delete`,
    challenge: '',
    // Commands write it, and the console reads it.
    display: '',
    failed_act: `select, insert,
  update (due_at, tries, outcome), delete`,
    // The console's own.
    openid_flow: '',
    // A person enrols by an invite, and uses a passkey; an administrator invites, changes and revokes. Locking the table of people
    // takes the right to update the whole of it. A row that is changed without the key has no right code.
    invite: `select, insert,
  update (used_at, mac, mac_version)`,
    person: `select, insert,
  update`,
    person_credential: `select, insert,
  update (sign_count, last_used_at, revoked_at, mac, mac_version)`,
    person_identity: `select, insert,
  update (revoked_at, mac, mac_version)`,
    // The console's own: it keeps sessions, challenges and acts that wait for a person.
    pending_act: '',
    session: '',
  },
}
