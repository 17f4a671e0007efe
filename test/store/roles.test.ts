// Roles belong to the whole server: databases that are set up at the same time may make them at the same time.
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeRoles } from '../../src/store/roles.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const DATABASES = 4
const ROUNDS = 10

describe('the roles of a server', () => {
  let databases: FreshDatabase[]
  let clients: Client[]
  beforeAll(async () => {
    databases = await Promise.all(Array.from({ length: DATABASES }, () => freshDatabase({ empty: true })))
    clients = databases.map(({ url }) => new Client({ connectionString: url }))
    await Promise.all(clients.map(client => client.connect()))
  })
  afterAll(async () => {
    await Promise.all(clients.map(client => client.end()))
    await Promise.all(databases.map(database => database.drop()))
  })

  it('are made once by databases that are set up at once', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const prefix = `roles_${randomBytes(5).toString('hex')}`
      const names = ['gateway', 'queue', 'reader', 'worker'].map(name => `${prefix}_${name}`)
      await Promise.all(clients.map(client => makeRoles(client, prefix)))
      const found = await clients[0]?.query(
        `select r.rolname as role, (select array_agg(m.member::regrole::text order by 1) from pg_auth_members as m
where m.roleid = r.oid and m.member <> current_user::regrole) as members from pg_roles as r
where r.rolname = any($1) and pg_has_role(current_user, r.oid, 'member') order by 1`,
        [names],
      )
      await clients[0]?.query(`drop role ${names.join(', ')}`)
      expect(found?.rows).toEqual([
        { role: names[0], members: null },
        { role: names[1], members: null },
        { role: names[2], members: [names[0], names[3]] },
        { role: names[3], members: null },
      ])
    }
  })
})
