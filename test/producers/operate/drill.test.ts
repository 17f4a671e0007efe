// The drill on a restored backup: what opens, and what does not, is named by key, version and row; no card is shown.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Check } from '../../../producers/operate/check.ts'
import { Secret } from '../../../src/secret.ts'
import { fileKeyProvider, makeKekFile } from '../../../src/vault/kek/file.ts'
import { keksOf } from '../../../src/vault/kek/provider.ts'
import { type KeyRing, openKeyRing, type WrappedKey } from '../../../src/vault/ring/key-ring.ts'
import { type Bench, openBench } from '../../cli/command-bench.ts'
import { testPan } from '../../support/test-pan.ts'

interface Drilled {
  opens: boolean
  checks: Check[]
  sampled: { name: string; version: number; sampled: number; failed: number; names: string[] }[]
}

const SCOPE = randomUUID()
const PANS = Array.from({ length: 5 }, (_, at) => testPan(at))

let bench: Bench
let ring: KeyRing
const tokens = PANS.map(() => randomUUID())
beforeAll(async () => {
  bench = await openBench()
  const path = join(bench.dataDir, 'kek')
  await bench.cli(['schema', 'upgrade', '--make-kek', path])
  await bench.cli([
    ...['threeds-contract', 'add', 'shop', '--entity', SCOPE, '--directory-server', 'http://127.0.0.1:1/ds'],
    ...['--acquirer-bin', '400000', '--acquirer-merchant-id', 'm-1', '--mcc', '5999', '--country', 'gb'],
    ...['--requestor-url', 'https://shop.example', '--notification-url', 'https://shop.example/return'],
  ])
  await bench.cli(['capture-key', 'add', 'k', '--entity', randomUUID(), '--type', 'jwe-ec'])
  const kek = await fileKeyProvider(path)
  for (const [at, pan] of PANS.entries()) {
    if (at === 3) await bench.cli(['key', 'rotate', 'seal'])
    ring = await openKeyRing(keksOf(kek), await keys())
    await insertToken(tokens[at] ?? '', pan)
  }
  const image = ring.sealBeforeImage(Buffer.from('{}'), tokens[0] ?? '')
  await bench.rows(
    'insert into tokenmill.before_image (receipt_id, token_id, sealed, key_version) values ($1,$2,$3,$4)',
    {
      values: [randomUUID(), tokens[0], image.sealed, image.keyVersion],
    },
  )
  const total = ring.sealTotalKey(new Secret(Buffer.alloc(32, 1)), 'M1')
  await bench.rows('insert into tokenmill.manifest_key (migration, sealed, key_version) values ($1, $2, $3)', {
    values: ['M1', total.sealed, total.keyVersion],
  })
})
afterAll(() => bench.close())

const keys = () =>
  bench.rows<WrappedKey & { kekId: string }>(
    'select purpose, version, kek_id as "kekId", wrapped, state from tokenmill.data_key',
  )

async function insertToken(tokenId: string, pan: string): Promise<void> {
  const { sealed, keyVersion } = ring.seal(new Secret(pan), tokenId, SCOPE)
  await bench.rows(
    `insert into tokenmill.token (token_id, token_scope, status, token_type, cards, sealed, seal_version, bin,
  last_four, brand, created_at, updated_at, version)
values ($1, $2, 'ACTIVE', 'REUSE', array[gen_random_uuid()], $3, $4, $5, $6, 'VISA', now(), now(), 1)`,
    {
      values: [...[tokenId, SCOPE, sealed, keyVersion], ...[pan.slice(0, 8), pan.slice(-4)]],
    },
  )
}

async function runDrill(env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr, json } = await bench.cli(['doctor', '--restore', '--json'], { env })
  const { opens, checks, sampled } = json<Drilled>()
  expect(status).toBe(opens ? 0 : 1)
  expect(PANS.filter(pan => `${stdout}${stderr}`.includes(pan))).toEqual([])
  return { opens, sampled, checks: Object.fromEntries(checks.map(check => [check.name, check])), stderr }
}

describe('doctor --restore', () => {
  beforeEach(async () => expect((await runDrill()).opens).toBe(true))

  it('says which keys open, and how many rows of each column and version', async () => {
    const { checks, sampled } = await runDrill()
    expect(sampled).toEqual([
      { name: 'token.sealed', version: 1, sampled: 3, failed: 0, names: [] },
      { name: 'token.sealed', version: 2, sampled: 2, failed: 0, names: [] },
      { name: 'threeds_contract.key_sealed', version: 1, sampled: 1, failed: 0, names: [] },
      { name: 'manifest_key.sealed', version: 1, sampled: 1, failed: 0, names: [] },
      { name: 'role_key.sealed', version: 1, sampled: 1, failed: 0, names: [] },
      { name: 'before_image.sealed', version: 1, sampled: 1, failed: 0, names: [] },
    ])
    expect(checks['key-encryption keys']?.says).toMatch(/^kek-[0-9a-f]{16} wraps \d+ keys and is here$/)
    expect(checks['data keys']?.says).toBe(`${(await keys()).length} data keys opened`)
    expect(checks['capture keys']?.says).toBe('1 capture key opened')
    expect(checks['signing keys']?.says).toBe('1 signing key opened')
    expect((await bench.cli(['doctor', '--restore'])).stdout).toContain('3 rows under version 1 opened')
  })

  it('names a token whose number is another row’s, or is not the one that the row shows', async () => {
    const [one, two, three] = tokens
    const before = await bench.rows<{ token_id: string; sealed: Buffer; last_four: string }>(
      'select token_id, sealed, last_four from tokenmill.token',
    )
    await bench.rows(
      `update tokenmill.token set sealed = (select sealed from tokenmill.token where token_id = $1)
where token_id = $2`,
      { values: [one, two] },
    )
    await bench.rows(`update tokenmill.token set last_four = '0000' where token_id = $1`, { values: [three] })
    const { opens, sampled, stderr } = await runDrill()
    expect(opens).toBe(false)
    expect(sampled[0]).toMatchObject({ failed: 2, sampled: 3 })
    expect(sampled[0]?.names.toSorted()).toEqual([two, three].toSorted())
    expect(stderr).toContain('these do not open: token.sealed')
    for (const row of before)
      await bench.rows('update tokenmill.token set sealed = $2, last_four = $3 where token_id = $1', {
        values: [row.token_id, row.sealed, row.last_four],
      })
  })

  it('names the rows of a version whose key is destroyed, and those under another key-encryption key', async () => {
    const [{ wrapped, kekId } = { wrapped: null, kekId: '' }] = (await keys()).filter(
      key => key.purpose === 'seal' && key.version === 1,
    )
    await bench.rows(
      `update tokenmill.data_key set state = 'DESTROYED', wrapped = null where purpose = 'seal' and version = 1`,
    )
    expect((await runDrill()).sampled[0]).toMatchObject({ version: 1, failed: 3 })
    // The database refuses what is wrapped by a key that it doesn't know.
    await bench.rows('alter table tokenmill.data_key disable trigger user')
    await bench.rows(
      `update tokenmill.data_key set state = 'DECRYPT_ONLY', wrapped = $1, kek_id = 'kek-0000000000000000'
where purpose = 'seal' and version = 1`,
      { values: [wrapped] },
    )
    const { sampled, checks } = await runDrill()
    expect(sampled[0]).toMatchObject({ version: 1, failed: 3 })
    expect(sampled[1]).toMatchObject({ version: 2, failed: 0 })
    expect(checks['data keys']?.says).toBe(`1 of ${(await keys()).length} do not open: seal/1 (kek-0000000000000000)`)
    expect(checks['key-encryption keys']?.says).toContain('kek-0000000000000000 wraps 1 key and is not here')
    await bench.rows(`update tokenmill.data_key set kek_id = $1 where purpose = 'seal' and version = 1`, {
      values: [kekId],
    })
    await bench.rows('alter table tokenmill.data_key enable trigger user')
  })

  it('names the key of a gateway that does not open', async () => {
    const [{ kid, sealed } = { kid: '', sealed: null }] = await bench.rows<{ kid: string; sealed: Buffer }>(
      'select kid, sealed from tokenmill.role_key',
    )
    await bench.rows(`update tokenmill.role_key set sealed = reverse(encode(sealed, 'hex'))::bytea`)
    const { opens, sampled, stderr } = await runDrill()
    expect(opens).toBe(false)
    expect(sampled.find(({ name }) => name === 'role_key.sealed')).toMatchObject({ failed: 1, names: [kid] })
    expect(stderr).toContain('these do not open: role_key.sealed')
    await bench.rows('update tokenmill.role_key set sealed = $1', { values: [sealed] })
  })

  it('needs no key-encryption key that wrapped only what is destroyed', async () => {
    const [{ kekId } = { kekId: '' }] = await keys()
    await bench.rows('alter table tokenmill.data_key disable trigger user')
    await bench.rows(
      `insert into tokenmill.data_key (purpose, version, kek_id, wrapped, state)
values ('seal', 9, 'kek-0000000000000000', null, 'DESTROYED')`,
    )
    await bench.rows('alter table tokenmill.data_key enable trigger user')
    const { opens, checks } = await runDrill()
    expect(checks['key-encryption keys']?.says).not.toContain('kek-0000000000000000')
    expect(opens).toBe(true)
    const absent = await runDrill({ TOKENMILL_KEK_FILE: join(bench.dataDir, 'absent') })
    expect(absent.checks['key-encryption keys']?.says).toContain(`this backup needs ${kekId}. `)
    await bench.rows('delete from tokenmill.data_key where version = 9')
  })

  it('names a purpose whose key is not in the backup, and an upgrade makes no other in its place', async () => {
    const missing = ['fingerprint', 'owner', 'api-key', 'audit', 'grant']
    await bench.rows('create table public.kept as select * from tokenmill.data_key where purpose = any($1)', {
      values: [missing],
    })
    // The keys for gateways are left out: the next upgrade encrypts them anew.
    await bench.rows('delete from tokenmill.shared_key where purpose = any($1)', { values: [missing] })
    await bench.rows('delete from tokenmill.data_key where purpose = any($1)', { values: [missing] })
    const { opens, checks } = await runDrill()
    expect(opens).toBe(false)
    expect(checks['active keys']).toMatchObject({
      state: 'critical',
      says: 'no active key of fingerprint, api-key, owner, audit, grant in this backup',
    })
    const before = await keys()
    const { status, stderr } = await bench.cli(['schema', 'upgrade'])
    expect({ status, stderr }).toEqual({ status: 78, stderr: expect.stringContaining('restore its row from a backup') })
    expect(stderr).toContain('fingerprint, api-key, owner, audit, grant')
    expect(await keys()).toEqual(before)
    await bench.rows('insert into tokenmill.data_key select * from public.kept')
    await bench.rows('drop table public.kept')
    expect((await bench.cli(['schema', 'upgrade'])).status).toBe(0)
  })

  it('says which key-encryption key a backup needs, where this host has another or none', async () => {
    const [{ kekId } = { kekId: '' }] = await keys()
    const other = join(bench.dataDir, 'other')
    await makeKekFile(other)
    for (const path of [other, `${other}-absent`]) {
      const { checks } = await runDrill({ TOKENMILL_KEK_FILE: path })
      expect(Object.keys(checks)).toEqual(['key-encryption keys'])
      expect(checks['key-encryption keys']).toMatchObject({
        state: 'critical',
        says: expect.stringContaining(`this backup needs ${kekId}. `),
      })
    }
  })
})
