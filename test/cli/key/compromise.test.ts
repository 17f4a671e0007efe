// `tokenmill key compromise`: it lists the exposed rows, replaces the key, and seals or codes anew; after a stop at any
// step it goes on.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { COMPROMISE_TIMES } from '../../../cli/commands/key/compromise.ts'
import { GRANT_LISTS } from '../../../cli/open/grant-lists.ts'
import { listUngranted } from '../../../src/acts/grants.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as reseals from '../../../src/store/reseal/reseals.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { cli } from '../command-bench.ts'

describeOnRedis('key compromise', engine => {
  const { settleMs } = COMPROMISE_TIMES
  let installation: Installation
  beforeAll(async () => {
    COMPROMISE_TIMES.settleMs = 0
    installation = await openInstallation(engine)
  })
  afterAll(async () => {
    COMPROMISE_TIMES.settleMs = settleMs
    await installation?.close()
  })

  const run = (...words: string[]) => cli(['key', ...words], { env: installation.env })
  const states = async (purpose: string) => {
    const keys = await dataKeys.list(installation.vault.store)
    return keys.filter(one => one.purpose === purpose).map(({ version, state }) => `${version} ${state}`)
  }
  const steps = async (purpose: string) => {
    const { rows } = await installation.vault.store.query<{ step: string }>({
      text: `select detail ->> 'step' as step from tokenmill.audit
where action = 'data-key.compromise' and subject = $1 and outcome = 'done' order by audit_id`,
      values: [purpose],
    })
    return rows.map(({ step }) => step)
  }

  it('replaces the key, lists whose rows it exposed, and says what is left to do', async () => {
    const out = join(installation.dataDir, 'exposed.csv')
    const { status, stdout } = await run('compromise', 'api-key', '--yes', '--out', out)
    expect(status).toBe(0)
    expect(stdout).toMatch(/^api-key\/1 exposed 1 in client\.api_key_hash; .*exposed\.csv lists them\./)
    expect(stdout).toMatch('tokenmill client api-key rotate NAME')
    const { clientId } = installation.credentials.signingKey
    expect(await readFile(out, 'utf8')).toBe(`column,key\nclient.api_key_hash,${clientId}\n`)
    expect((await stat(out)).mode & 0o777).toBe(0o600)
    expect(await states('api-key')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
    expect(await steps('api-key')).toEqual(['begin', 'list', 'end'])
    expect((await run('list')).stdout).toMatch(/\napi-key\/1 +DECRYPT_ONLY, compromised /)
  })

  it('of grant ends that codes under the exposed version are believed', async () => {
    const { store, ring } = installation.vault
    const ask = (text: string) => store.query({ text })
    await ask('create table public.kept as select * from tokenmill.scope')
    expect(await run('compromise', 'grant', '--yes')).toMatchObject({ status: 0 })
    await ring.refresh()
    expect(await listUngranted(store, ring, GRANT_LISTS)).toEqual([])
    const { rows } = await store.query<{ name: string }>({
      text: `update tokenmill.scope as s set mac = k.mac, mac_version = k.mac_version from public.kept as k
where s.token_scope = k.token_scope returning 'scope ' || s.token_scope as name`,
    })
    expect(rows.length).toBeGreaterThan(0)
    expect((await listUngranted(store, ring, GRANT_LISTS)).sort()).toEqual(rows.map(({ name }) => name).sort())
    await ask('drop table public.kept')
  })

  it('goes on where it was killed, and replaces the key once', async () => {
    const { store } = installation.vault
    const out = join(installation.dataDir, 'webhook.csv')
    await store.query({
      text: `insert into tokenmill.process (process_id, role, host, version, connections, keys, seen_at)
values ('00000000-0000-4000-8000-00000000000a', 'bulk', 'slow-host', '1.0.0', 1, '{webhook/1}', now() + interval '1 hour')`,
    })
    const words = ['key', 'compromise', 'webhook', '--yes', '--out', out]
    const killed = startCommand(words, { env: installation.env as Record<string, string> })
    await killed.line(/Waiting for 1 process to load it: slow-host/, { stream: 'stderr' })
    await killed.kill9()
    expect(await states('webhook')).toEqual(['1 ACTIVE', '2 PENDING'])
    await store.query({ text: `update tokenmill.process set ended_at = now() where host = 'slow-host'` })
    const again = startCommand(words, { env: installation.env as Record<string, string> })
    await again.line(/Waiting until no process uses the former key/, { stream: 'stderr' })
    await again.kill9()
    expect(await states('webhook')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
    // Workers have sealed everything anew meanwhile.
    await reseals.begin(store, { purpose: 'webhook', version: 2, rowsExpected: undefined })
    await store.query({
      text: `update tokenmill.reseal set state = 'DONE', ended_at = now(), clean_at = now() where purpose = 'webhook'`,
    })
    const last = await run('compromise', 'webhook', '--yes', '--json', '--out', out)
    expect(last).toMatchObject({ status: 0, stderr: expect.stringMatching('webhook/1 was marked before; going on.') })
    expect(last.json()).toEqual({ purpose: 'webhook', version: 1, exposed: {}, file: out })
    expect(await states('webhook')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
    expect(await steps('webhook')).toEqual(['begin', 'begin', 'begin', 'list', 'end'])
  })

  it('stops if the disk takes only a part of its file, and counts no row as listed', async () => {
    const { store } = installation.vault
    await store.query({
      text: `insert into tokenmill.before_image (receipt_id, token_id, sealed, key_version)
select gen_random_uuid(), gen_random_uuid(), '', 1 from generate_series(1, 1000)`,
    })
    const words = (file: string) => ['compromise', 'before-image', '--yes', '--out', join(installation.dataDir, file)]
    expect(await run(...words('no-folder/copies.csv'))).toMatchObject({ status: 1 })
    // The separate process waits for as long as another process may use the former version.
    await store.query({ text: `update tokenmill.data_key set activated_at = now() - interval '1 hour'` })
    // No file may be longer than 8 KiB: as on a full disk, a write ends short, and the next one fails.
    const limited = startCommand(['key', ...words('copies.csv')], {
      env: { ...(installation.env as Record<string, string>), NODE_DISABLE_COMPILE_CACHE: '1' },
      node: 'bash',
      nodeArgs: ['-c', 'ulimit -f 8; exec "$0" "$@"', process.execPath],
    })
    expect({ ...(await limited.exit), stderr: limited.stderr() }).toEqual({
      code: 1,
      signal: null,
      stderr: expect.stringMatching(/copies\.csv can't be written \(EFBIG\); name another file/),
    })
    expect((await readdir(installation.dataDir)).filter(name => name.startsWith('copies'))).toEqual([])
    const { rows } = await store.query<{ exposed_at: number | null }>({
      text: `select exposed_at from tokenmill.data_key where purpose = 'before-image' and version = 1`,
    })
    expect(rows).toEqual([{ exposed_at: null }])
    expect(await steps('before-image')).toEqual(['begin', 'begin'])
    expect(await run(...words('copies.csv'))).toMatchObject({
      status: 0,
      stdout: expect.stringMatching('before-image/1 exposed 1,000 in before_image.sealed'),
    })
    const listed = await readFile(join(installation.dataDir, 'copies.csv'), 'utf8')
    expect(listed.split('\n')).toHaveLength(1_002)
  })

  it('makes a fresh version where one waited to come into use, which is dropped, and whoever waits for it is told', async () => {
    const { store } = installation.vault
    await store.query({
      text: `insert into tokenmill.process (process_id, role, host, version, connections, keys, seen_at)
values ('00000000-0000-4000-8000-00000000000b', 'bulk', 'slower-host', '1.0.0', 1, '{owner/1}', now() + interval '1 hour')`,
    })
    const rotating = startCommand(['key', 'rotate', 'owner'], { env: installation.env as Record<string, string> })
    await rotating.line(/Waiting for 1 process to load it: slower-host/, { stream: 'stderr' })
    expect(await states('owner')).toEqual(['1 ACTIVE', '2 PENDING'])
    const ended = run('compromise', 'owner', '--yes')
    await rotating.line(/owner\/2 was dropped meanwhile/, { stream: 'stderr' })
    expect(await rotating.exit).toMatchObject({ code: 1 })
    await store.query({ text: `update tokenmill.process set ended_at = now() where host = 'slower-host'` })
    const { status, stderr } = await ended
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: expect.stringMatching('owner/2, which waited .* is dropped'),
    })
    expect(await states('owner')).toEqual(['1 DECRYPT_ONLY', '2 DESTROYED', '3 ACTIVE'])
    const { rows } = await store.query<{ wrapped: Buffer | null }>({
      text: `select wrapped from tokenmill.data_key where purpose = 'owner' and version = 2`,
    })
    expect(rows).toEqual([{ wrapped: null }])
  })

  it('turns analytics only if it is said that values change', async () => {
    expect((await run('rotate', 'analytics')).stderr).toMatch('key compromise analytics --values-change')
    expect(await run('compromise', 'analytics', '--yes')).toMatchObject({ status: 64 })
    expect(await states('analytics')).toEqual(['1 ACTIVE'])
    expect(await run('compromise', 'analytics', '--yes', '--values-change')).toMatchObject({ status: 0 })
    expect(await states('analytics')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
  })
})
