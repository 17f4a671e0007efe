// The catalogue of sealed columns against the schema: a column that holds bytes is either in the catalogue, or listed
// here with the reason why not. A migration that adds such a column fails here until it is listed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import {
  BEFORE_IMAGE_VERSIONS,
  SEALED_COLUMNS,
  SEALED_NAMES,
  type SealedColumn,
} from '../../../src/store/reseal/sealed-columns.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const KEYED_HASH = 'a keyed hash, which nobody can open'
const CODE = 'the code by which a worker knows that tokenmill wrote the row: a keyed hash'
const SESSION = 'the plain hash of 32 random bytes: of the cookie of a session'
const CHAIN = 'a plain hash over audit rows, which hold no card'
const NOT_RESEALED: Record<string, string> = {
  'audit.hash': CHAIN,
  'audit.mac': KEYED_HASH,
  'audit_chain.cut_hash': CHAIN,
  'audit_chain.hash': CHAIN,
  'authentication.request_digest': KEYED_HASH,
  'before_image.sealed': 'lives for 24 hours; its key is destroyed only after that (BEFORE_IMAGE)',
  'capture_key.mac': CODE,
  'challenge.challenge': 'a value that is used once',
  'client.api_key_hash': KEYED_HASH,
  'client.mac': CODE,
  'client_key.mac': CODE,
  'confirmation.audit_hash': CHAIN,
  'confirmation.mac': CODE,
  'data_key.wrapped': 'wrapped by a key-encryption key, which has its own rotation',
  'display.link_hash': 'a plain hash of 32 bytes that nobody can guess',
  'endpoint.mac': CODE,
  'event.mac': CODE,
  'intake.body_mac': KEYED_HASH,
  'invite.lookup_hash': 'a plain hash of 32 bytes that nobody can guess',
  'invite.mac': CODE,
  'invite.public_key': 'the public half of a key',
  'kek.probe': 'wrapped by the key-encryption key that it proves',
  'key_lives.proof': 'wrapped by the key-encryption key, and written anew when that turns',
  'manifest_run.digests': KEYED_HASH,
  'openid_flow.browser_hash': 'the hash of a cookie that lives for ten minutes',
  'openid_flow.session_hash': SESSION,
  'openid_flow.state_hash': 'a value that is used once',
  'operation.request_digest': KEYED_HASH,
  'outbox.answers': 'a plain hash of what a client asked for, which this table alone holds',
  'outbox.envelope_digest': 'a plain hash of what a client signed',
  'outbox.mac': CODE,
  'pending_act.session_hash': SESSION,
  'person.mac': CODE,
  'person_credential.mac': CODE,
  'person_identity.mac': CODE,
  'receipt.content_digest': KEYED_HASH,
  'receipt.envelope_digest': 'a plain hash of what a client signed',
  'receipt.mac': CODE,
  'receipt.request_digest': KEYED_HASH,
  'released_reference.card_hash': KEYED_HASH,
  'released_reference.owner_hash': KEYED_HASH,
  'report.request_key': 'a plain hash of the parameters',
  'report.sha256': 'the plain hash of a file',
  'scope.mac': CODE,
  'session.session_hash': SESSION,
  'signing_key.mac': CODE,
  'threeds_contract.mac': CODE,
}

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
})
afterAll(async () => {
  await store.close()
  await database.drop()
})

async function columnsOf(type: string): Promise<string[]> {
  const { rows } = await store.query<{ name: string }>({
    text: `select c.relname || '.' || a.attname as name from pg_attribute as a join pg_class as c on c.oid = a.attrelid
where c.relnamespace = 'tokenmill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
and a.attnum > 0 and not a.attisdropped and a.atttypid = $1::regtype order by 1`,
    values: [type],
  })
  return rows.map(({ name }) => name)
}

describe('a column that holds bytes', () => {
  it('is sealed anew when its key turns, or says why not', async () => {
    expect([...SEALED_NAMES, ...Object.keys(NOT_RESEALED)].sort()).toEqual(await columnsOf('bytea'))
  })

  it('has a version beside it, which a row with sealed bytes always names, and a primary key', async () => {
    const smallints = new Set(await columnsOf('smallint'))
    for (const version of Object.values(BEFORE_IMAGE_VERSIONS)) expect(smallints).toContain(`before_image.${version}`)
    for (const name of SEALED_NAMES) {
      const { table, key, keyType, version }: SealedColumn = SEALED_COLUMNS[name]
      expect(smallints, name).toContain(`${table}.${version}`)
      const { rows } = await store.query<{ key: string; type: string }>({
        text: `select a.attname as key, a.atttypid::regtype::text as type from pg_index as i
join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
where i.indrelid = $1::regclass and i.indisprimary`,
        values: [`tokenmill.${table}`],
      })
      expect(rows, name).toEqual([{ key, type: keyType }])
    }
  })
})
