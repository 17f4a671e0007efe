// A signing key that whoever owns the database has added, or changed, isn't used: not in a client's file, not in the
// JWKS of the workers, and not in the verification of the audit.
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { GRANT_LISTS } from '../../../cli/open/grant-lists.ts'
import { listUngranted } from '../../../src/acts/grants.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { cli } from '../command-bench.ts'

describeStore('a signing key in the database', engine => {
  let installation: Installation
  let own: string[]
  beforeAll(async () => {
    installation = await openInstallation(engine)
    own = await kidsIn('signing_key')
  })
  afterAll(() => installation?.close())

  const ask = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  async function kidsIn(table: 'signing_key'): Promise<string[]> {
    return (await ask<{ kid: string }>(`select kid from tokenmill.${table} order by active_at desc`)).map(
      ({ kid }) => kid,
    )
  }
  const ungranted = () => listUngranted(installation.vault.store, installation.vault.ring, GRANT_LISTS)
  const kidsOfNewClient = async (name: string) => [
    ...(await installation.addClient(name)).credentials.installationKeys.keys(),
  ]
  /** A retired key, as one that signed years ago. `code`: where its code is taken from. */
  async function plant(kid: string): Promise<void> {
    const { publicKey } = generateKeyPairSync('ed25519')
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg: 'EdDSA', use: 'sig' }
    await ask(
      `insert into tokenmill.signing_key (kid, alg, public_jwk, state, active_at, retired_at, mac, mac_version)
select $1, 'EdDSA', $2::jsonb, 'RETIRED', now() - interval '2 years', now() - interval '1 year', mac, mac_version
from tokenmill.signing_key where state = 'ACTIVE'`,
      [kid, JSON.stringify(jwk)],
    )
  }

  it('has a code, also the one that is announced, and gets another when the key of codes turns', async () => {
    expect(await cli(['key', 'rotate', 'signing'], { env: installation.env })).toMatchObject({ status: 0 })
    const announced = await kidsIn('signing_key')
    expect(announced).toHaveLength(2)
    expect(await ungranted()).toEqual([])
    expect(await kidsOfNewClient('before')).toEqual(announced)
    expect(await cli(['key', 'rotate', 'grant'], { env: installation.env })).toMatchObject({ status: 0 })
    await installation.vault.ring.refresh()
    expect(await ungranted()).toEqual([])
    expect(new Set((await signingKeys.findPublic(installation.vault.store)).map(key => key.macVersion))).toEqual(
      new Set([2]),
    )
    expect(await cli(['key', 'rotate', 'signing', '--cancel'], { env: installation.env })).toMatchObject({ status: 0 })
  })

  it('that somebody else has added is in no new client’s file and in no JWKS of workers, and doctor names it', async () => {
    await plant('planted')
    expect(await kidsOfNewClient('after')).toEqual(own)
    const { json } = await cli(['doctor', '--json'], { env: installation.env })
    const { checks } = json<{ checks: { name: string; says: string }[] }>()
    expect(checks.find(({ name }) => name === 'granted rights')?.says).toContain('signing-key planted')
    const workers = startCommand(['workers'], {
      env: { ...installation.env, TOKENMILL_LOG_LEVEL: 'info', TOKENMILL_PROCESSES: '1' },
    })
    try {
      const [, port] = await workers.line(/"opsPort":(\d+),"msg":"all worker processes work"/, {
        stream: 'stderr',
      })
      const response = await fetch(`http://127.0.0.1:${port}/.well-known/jwks.json`)
      const { keys } = (await response.json()) as { keys: { kid: string }[] }
      expect(keys.map(({ kid }) => kid)).toEqual(own)
    } finally {
      workers.signal('SIGTERM')
      await workers.exit
      await ask(`delete from tokenmill.signing_key where kid = 'planted'`)
    }
  })

  it('whose public half was changed is in no file, and no file is made without a key of ours', async () => {
    await ask('create table public.kept as select * from tokenmill.signing_key')
    const { publicKey } = generateKeyPairSync('ed25519')
    await ask('update tokenmill.signing_key set public_jwk = public_jwk || $1::jsonb', [
      JSON.stringify({ x: publicKey.export({ format: 'jwk' }).x }),
    ])
    const words = [
      'client',
      'add',
      'none',
      '--entity',
      '0190a5d1-2d1c-7c5e-8f43-2b8f2e7a9c11',
      '--roles',
      'TOKEN_WRITE',
    ]
    const added = await cli([...words, '--out', `${installation.dataDir}/none`], { env: installation.env })
    expect(added).toMatchObject({ status: 78, stderr: expect.stringContaining('no signing key in the database') })
    await ask(
      'update tokenmill.signing_key as s set public_jwk = k.public_jwk from public.kept as k where s.kid = k.kid',
    )
    await ask('drop table public.kept')
    expect(await ungranted()).toEqual([])
  })
})
