// The database's owner can't grant rights: a worker treats a row that grants rights as absent unless tokenmill wrote
// it.
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { GRANT_LISTS } from '../../cli/open/grant-lists.ts'
import { listUngranted } from '../../src/acts/grants.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import { openDirectory } from '../../workers/directory.ts'
import { cli } from '../cli/command-bench.ts'
import { describeStore } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'

const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const CONTRACT = [
  ...['--entity', ENTITY, '--directory-server', 'https://ds.example/areq', '--acquirer-bin', '400000'],
  ...['--acquirer-merchant-id', 'm-1', '--mcc', '5999', '--country', 'GB', '--requestor-url', 'https://shop.example'],
  ...['--notification-url', 'https://pay.example/return'],
]

describeStore('to a worker', engine => {
  let installation: Installation
  let clientId: string
  let kid: string
  beforeAll(async () => {
    installation = await openInstallation(engine)
    ;({ clientId, kid } = installation.credentials.signingKey)
  })
  afterAll(() => installation?.close())

  /** Runs a statement as the owner of the database. */
  const own = async (text: string, ...values: unknown[]) => {
    const { rows } = await installation.vault.store.query<Record<string, string>>({ text, values })
    return rows
  }
  /** What the directory of a new worker returns, and which rows it reports. */
  const look = async () => {
    const named: string[] = []
    const directory = await openDirectory(
      { ...installation.vault, queues: installation.queues, onUngranted: (kind, id) => named.push(`${kind} ${id}`) },
      Date.now,
    )
    return { directory, named }
  }
  it('are read with the keys of now, by a worker that was cut off while a compromise ended', async () => {
    const { ring } = installation.vault
    let isAfresh = false
    const behind = {
      isAfresh: () => isAfresh,
      refresh: async () => {
        isAfresh = true
      },
      grantMacBy: (text: string, version: number) => (isAfresh ? undefined : ring.grantMacBy(text, version)),
    }
    const named: string[] = []
    const directory = await openDirectory(
      {
        ...installation.vault,
        ring: behind,
        queues: installation.queues,
        onUngranted: (kind, id) => named.push(`${kind} ${id}`),
      },
      Date.now,
    )
    expect(await directory.client(clientId)).toBeUndefined()
    expect(named).toEqual([`client ${clientId}`])
  })

  const doctor = async () => {
    const { json } = await cli(['doctor', '--json'], { env: installation.env })
    return json<{ checks: { name: string; state: string; says: string }[] }>().checks.find(
      ({ name }) => name === 'granted rights',
    )
  }
  /** Runs `work` after the statement, and then puts the tables back. */
  async function after(text: string, values: unknown[], work: () => Promise<void>): Promise<void> {
    const tables = ['client', 'client_key', 'capture_key', 'scope', 'endpoint']
    for (const table of tables) await own(`create table public.${table} as select * from tokenmill.${table}`)
    try {
      await own(text, ...values)
      await work()
    } finally {
      await own('delete from tokenmill.client_key')
      for (const table of tables.toReversed().filter(one => one !== 'client_key'))
        await own(`delete from tokenmill.${table}`)
      for (const table of tables) {
        await own(`insert into tokenmill.${table} select * from public.${table}`)
        await own(`drop table public.${table}`)
      }
    }
  }
  beforeEach(async () =>
    expect(await listUngranted(installation.vault.store, installation.vault.ring, GRANT_LISTS)).toEqual([]),
  )

  it('a client with a role more, or another entity, is absent, and doctor names it', async () => {
    const changes: [string, unknown[]][] = [
      [`update tokenmill.client set roles = roles || '{ADMIN}' where client_id = $1`, [clientId]],
      [`update tokenmill.client set entities = entities || $2::uuid[] where client_id = $1`, [clientId, [OTHER]]],
      [`update tokenmill.client set names = 'numeric' where client_id = $1`, [clientId]],
      [`update tokenmill.client set mac = null, mac_version = null where client_id = $1`, [clientId]],
    ]
    for (const [text, values] of changes)
      await after(text, values, async () => {
        const { directory, named } = await look()
        expect(await directory.client(clientId)).toBeUndefined()
        expect(named).toEqual([`client ${clientId}`])
        expect(await doctor()).toMatchObject({ state: 'critical', says: expect.stringContaining(`client ${clientId}`) })
      })
    const { directory, named } = await look()
    expect((await directory.client(clientId))?.keys.map(key => key.kid)).toEqual([kid])
    expect(named).toEqual([])
    expect(await doctor()).toMatchObject({ state: 'well' })
  })

  it('a client that was minted is absent, though it has the code of another', async () => {
    const minted = `insert into tokenmill.client
  (client_id, name, user_id, entities, roles, alg, system, names, mac, mac_version)
select 'cmmmmmmmmmmmmmmmmmmmmmmmmm', 'minted', gen_random_uuid(), entities, roles || '{ADMIN}', alg, system, names, mac, mac_version
from tokenmill.client where client_id = $1`
    await after(minted, [clientId], async () => {
      const { directory, named } = await look()
      expect(await directory.client('cmmmmmmmmmmmmmmmmmmmmmmmmm')).toBeUndefined()
      expect(named).toEqual(['client cmmmmmmmmmmmmmmmmmmmmmmmmm'])
    })
  })

  it('a key that was swapped, added, or brought back after its time verifies nothing', async () => {
    const jwk = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
    const changes: [string, unknown[], string][] = [
      [`update tokenmill.client_key set public_jwk = $2::jsonb where kid = $1`, [kid, JSON.stringify(jwk)], kid],
      [`update tokenmill.client_key set state = 'RETIRED', valid_until = '2999-01-01' where kid = $1`, [kid], kid],
      [
        `insert into tokenmill.client_key (client_id, kid, alg, public_jwk, mac, mac_version)
select client_id, 'another', alg, $2::jsonb, mac, mac_version from tokenmill.client_key where kid = $1`,
        [kid, JSON.stringify(jwk)],
        'another',
      ],
    ]
    for (const [text, values, bad] of changes)
      await after(text, values, async () => {
        const { directory, named } = await look()
        expect((await directory.client(clientId))?.keys.map(key => key.kid)).toEqual(bad === kid ? [] : [kid])
        expect(named).toEqual([`client-key ${clientId} ${bad}`])
        expect((await doctor())?.says).toContain(`client-key ${clientId} ${bad}`)
      })
  })

  it('a capture key whose public half or entity was swapped opens no card', async () => {
    const [key, other] = await captureKeys.list(installation.vault.store, ENTITY)
    for (const [column, value] of [
      ['public_key', other?.publicKey],
      ['entity_id', OTHER],
      ['number', 2],
      ['state', 'RETIRED'],
      ['retired_at', '2030-01-01'],
    ])
      await after(`update tokenmill.capture_key set ${column} = $2 where alias = $1`, [key?.alias, value], async () => {
        const { directory, named } = await look()
        expect(await directory.captureLine(key?.alias ?? '')).toBeUndefined()
        expect(await directory.captureLine(other?.alias ?? '')).toBeDefined()
        const name = `capture-key ${key?.alias}/${column === 'number' ? 2 : 1}`
        expect(named).toEqual([name])
        expect((await doctor())?.says).toContain(name)
      })
  })

  it('a scope of another entity, or with more digits of the BIN, is absent', async () => {
    const { scope } = installation
    for (const set of [`entity_id = '${OTHER}'`, 'bin_digits = 6', 'keep_billing = true'])
      await after(`update tokenmill.scope set ${set} where token_scope = $1`, [scope], async () => {
        const { directory, named } = await look()
        expect(await directory.scope(scope)).toBeUndefined()
        expect(named).toEqual([`scope ${scope}`])
        expect(await directory.scopeIn(installation.vault.store, scope)).toBeUndefined()
        expect((await doctor())?.says).toContain(`scope ${scope}`)
      })
  })

  it('what is revoked stays revoked whatever its code is, and is not brought back by the mark alone', async () => {
    const spare = await installation.addClient('spare')
    const { clientId: gone, kid: goneKid } = spare.credentials.signingKey
    await after('select 1', [], async () => {
      expect((await cli(['client', 'key', 'revoke', gone, goneKid], { env: installation.env })).status).toBe(0)
      const { directory, named } = await look()
      expect((await directory.client(gone))?.keys.map(key => key.live)).toEqual([false])
      expect(named).toEqual([])
      await own(`update tokenmill.client_key set state = 'ACTIVE' where kid = $1`, goneKid)
      expect((await (await look()).directory.client(gone))?.keys).toEqual([])
    })
    await after('update tokenmill.client set revoked_at = now() where client_id = $1', [gone], async () => {
      const { directory, named } = await look()
      expect((await directory.client(gone))?.client.revokedAt).not.toBeNull()
      expect(named).toEqual([])
    })
    await after('select 1', [], async () => {
      expect((await cli(['client', 'revoke', gone], { env: installation.env })).status).toBe(0)
      await own('update tokenmill.client set revoked_at = null where client_id = $1', gone)
      const { directory, named } = await look()
      expect(await directory.client(gone)).toBeUndefined()
      expect(named).toEqual([`client ${gone}`])
    })
  })

  it('every command that writes such a row leaves one that is known, and none codes a row that it did not write', async () => {
    const { env } = installation
    const spare = await installation.addClient('changing')
    const { clientId: changing, kid: first } = spare.credentials.signingKey
    const ways = [
      ['client', 'names', changing, 'numeric'],
      ['client', 'key', 'add', changing],
      ['client', 'key', 'retire', changing, first, '--until', '2999-01-01'],
      ['client', 'api-key', 'rotate', changing],
      ['scope', 'add', '--entity', ENTITY],
      ['capture-key', 'add', 'another', '--entity', ENTITY, '--type', 'jwe-ec'],
      ['capture-key', 'retire', 'another'],
      ['client', 'add', 'late', '--entity', ENTITY, '--roles', 'TOKEN_READ'],
      ['threeds-contract', 'add', 'shop', ...CONTRACT],
      ['events', 'add', 'late', '--to', 'queue', '--events', 'batch.finished'],
      ['events', 'add', 'late', '--to', 'https://shop.example/', '--events', 'batch.finished'],
      ['schema', 'upgrade'],
    ]
    for (const words of ways) {
      expect({ words, status: (await cli(words, { env })).status }).toEqual({ words, status: 0 })
      expect({
        words,
        bad: await listUngranted(installation.vault.store, installation.vault.ring, GRANT_LISTS),
      }).toEqual({
        words,
        bad: [],
      })
    }
    await after(`update tokenmill.client set roles = roles || '{ADMIN}' where client_id = $1`, [changing], async () => {
      for (const words of [
        ['client', 'names', changing, 'checked'],
        ['client', 'key', 'add', changing],
      ])
        expect((await cli(words, { env })).stderr).toContain('was not written by tokenmill')
      await cli(['schema', 'upgrade'], { env })
      expect((await look()).named).toEqual([])
      expect(await listUngranted(installation.vault.store, installation.vault.ring, GRANT_LISTS)).toEqual([
        `client ${changing}`,
      ])
    })
  })

  it('no command codes a row that a trigger of the database changed, and each says what to do', async () => {
    const { env } = installation
    const spare = await installation.addClient('triggered')
    const { clientId: triggered, kid: first } = spare.credentials.signingKey
    const [other] = await captureKeys.list(installation.vault.store, ENTITY)
    const jwk = JSON.stringify(generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }))
    const clientRoles = ['client', `new.roles := new.roles || '{ADMIN}'`] as const
    const keyHalf = ['client_key', `new.public_jwk := '${jwk}'`] as const
    const ways = [
      { swap: clientRoles, words: ['client', 'add', 'late-one', '--entity', ENTITY, '--roles', 'TOKEN_READ'] },
      { swap: clientRoles, words: ['client', 'names', triggered, 'numeric'] },
      { swap: keyHalf, words: ['client', 'key', 'add', triggered] },
      { swap: keyHalf, words: ['client', 'key', 'retire', triggered, first, '--until', '2999-01-01'] },
      {
        swap: ['capture_key', `new.public_key := '${other?.publicKey}'`] as const,
        words: ['capture-key', 'add', 'swapped', '--entity', ENTITY, '--type', 'jwe-ec'],
      },
      { swap: ['scope', 'new.bin_digits := 6'] as const, words: ['scope', 'add', '--entity', ENTITY] },
      {
        swap: ['threeds_contract', `new.directory_url := 'https://other.example'`] as const,
        words: ['threeds-contract', 'add', 'late', ...CONTRACT],
      },
      {
        swap: ['endpoint', `new.url := 'https://other.example'`] as const,
        words: ['events', 'add', 'triggered', '--to', 'https://shop.example/', '--events', 'batch.finished'],
      },
    ]
    for (const { swap, words } of ways) {
      const [table, assignment] = swap
      const rows = () => own(`select * from tokenmill.${table} order by created_at`)
      const before = await rows()
      await own(
        `create function public.swap() returns trigger language plpgsql as $body$ begin ${assignment}; return new; end $body$`,
      )
      await own(
        `create trigger swap before insert or update on tokenmill.${table} for each row execute function public.swap()`,
      )
      const { status, stderr } = await cli(words, { env })
      await own('drop function public.swap cascade')
      expect({ words, status, stderr }).toEqual({
        words,
        status: 78,
        stderr: expect.stringMatching(/other than it was written.*trigger/),
      })
      expect(await rows()).toEqual(before)
    }
  })

  it('no row is coded anew where the key was removed together with its rows of the audit', async () => {
    await own(`create table public.kept as select * from tokenmill.data_key where purpose = 'grant'`)
    await own(`create table public.kept_audit as select * from tokenmill.audit where subject = 'grant'`)
    await own(`delete from tokenmill.data_key where purpose = 'grant'`)
    await own(`delete from tokenmill.audit where subject = 'grant'`)
    try {
      const upgraded = await cli(['schema', 'upgrade'], { env: installation.env })
      expect(upgraded).toMatchObject({
        status: 78,
        stderr: expect.stringMatching(/lost its data key of grant.*restore its row from a backup/),
      })
      expect(await own(`select from tokenmill.data_key where purpose = 'grant'`)).toEqual([])
    } finally {
      await own('insert into tokenmill.data_key select * from public.kept')
      await own('insert into tokenmill.audit overriding system value select * from public.kept_audit')
      await own('drop table public.kept, public.kept_audit')
    }
  })
})
