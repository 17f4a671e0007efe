// A gateway, which has no key-encryption key, while the keys that it may know are replaced: no request fails, and no
// process is restarted. The rotation waits for a host without its key file, and names it.
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SHARED_PURPOSES } from '../../../../src/vault/ring/shared-keys.ts'
import { cli } from '../../../cli/command-bench.ts'
import { describeOnRedis } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { testPan } from '../../../support/test-pan.ts'
import { until } from '../../../support/until.ts'
import { turnKey } from '../../../workers/reseal/turn-key.ts'
import { BATCHES, basicOf, CARD, type Caller, openGatewayFor } from '../bundle.ts'

const NOBODY = `${CARD}/t${'0'.repeat(26)}`

describeOnRedis('a gateway', engine => {
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    installation = await openInstallation(engine)
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  const run = (...words: string[]) => cli(words, { env: installation.env })
  const post = (batchId: string, pan: string) =>
    caller.call('POST', `${BATCHES}?token_scope=${installation.scope}&batch_id=${batchId}`, {
      headers: { 'content-type': 'text/csv' },
      body: `card_number,expiry_month,expiry_year\n${pan},12,2034\n`,
    })
  const rows = async (text: string) => (await installation.vault.store.query({ text })).rows

  it('without the file of its keys does not begin, and says how to get it', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'tokenmill-gateway-'))
    await cp(join(installation.dataDir, 'system'), join(dataDir, 'system'), { recursive: true })
    await rm(join(dataDir, 'system', 'gateway-keys.jwk'))
    await expect(openGatewayFor(installation, { TOKENMILL_DATA_DIR: dataDir })).rejects.toThrow(
      /gateway-keys\.jwk does not exist; `tokenmill schema upgrade` makes it/,
    )
    await rm(dataDir, { recursive: true })
  })

  it('goes over to new keys by itself, and knows what it hashed under the former ones', async () => {
    expect(await post('before', testPan(1))).toMatchObject({ status: 202 })
    const seen = new Set<number>()
    let isRotating = true
    const traffic = (async () => {
      while (isRotating) seen.add((await caller.call('GET', NOBODY)).status)
    })()
    const rotated = await Promise.all(SHARED_PURPOSES.map(purpose => run('key', 'rotate', purpose)))
    isRotating = false
    await traffic
    expect(rotated.map(({ status }) => status)).toEqual([0, 0, 0])
    expect(rotated.map(({ stderr }) => stderr).join()).toMatch(/API keys under a former version: first \(api-key\/1\)/)
    expect(caller.gateway.deps.ring.names().filter(name => name.endsWith('/2'))).toHaveLength(3)
    expect([...seen]).toEqual([404])

    // A repeat of an earlier batch is recognised by the former key. Another body under its id is refused.
    expect(await post('before', testPan(1))).toMatchObject({ status: 202, body: { batch_id: 'before' } })
    expect(await post('before', testPan(2))).toMatchObject({ status: 400 })
    await until(() => caller.gateway.deps.ring.intakeKey().version === 2)
    expect(await post('after', testPan(3))).toMatchObject({ status: 202 })
    expect(await rows('select batch_id, body_mac_version as version from tokenmill.intake order by intake_no')).toEqual(
      [
        { batch_id: 'before', version: 1 },
        { batch_id: 'after', version: 2 },
      ],
    )

    // An API key is hashed under the new key when it is replaced.
    expect((await run('key', 'list')).stderr).toMatch('first (api-key/1)')
    const made = (await run('client', 'api-key', 'rotate', 'first', '--json')).json<{
      user_id: string
      api_key: string
    }>()
    const authorization = `Basic ${Buffer.from(`${made.user_id}:${made.api_key}`).toString('base64')}`
    const former = await basicOf(installation.clientFile)
    await expect.poll(async () => (await caller.call('GET', NOBODY, { authorization })).status).toBe(404)
    expect((await caller.call('GET', NOBODY, { authorization: former })).status).toBe(401)
    expect((await run('key', 'list')).stderr).toBe('')
  })

  it('that has not heard of a version yet reads it for the first request that needs it', async () => {
    const other = await installation.addClient('other')
    const { version } = await turnKey(installation.vault, 'api-key')
    await run('schema', 'upgrade')
    const made = (await run('client', 'api-key', 'rotate', 'other', '--json')).json<{
      user_id: string
      api_key: string
    }>()
    expect(await rows(`select api_key_version as version from tokenmill.client where name = 'other'`)).toEqual([
      { version },
    ])
    const authorization = `Basic ${Buffer.from(`${made.user_id}:${made.api_key}`).toString('base64')}`
    expect((await caller.call('GET', NOBODY, { authorization })).status).toBe(404)
    expect(other.scope).not.toBe(installation.scope)
  })

  it('whose key was forgotten gets no further version, and its file is never used again', async () => {
    const [own] = (await run('key', 'list', 'gateway', '--json')).json<{ kid: string; opens: string[] }[]>()
    expect(own?.opens.length).toBeGreaterThanOrEqual(6)
    expect(await run('key', 'forget', 'gateway', own?.kid ?? '')).toMatchObject({ status: 0 })
    expect(await run('key', 'forget', 'gateway', own?.kid ?? '')).toMatchObject({ status: 1 })
    expect(await rows('select from tokenmill.shared_key')).toEqual([])
    expect((await run('schema', 'upgrade', '--json')).status).toBe(0)
    const [next, ...others] = (await run('key', 'list', 'gateway', '--json')).json<{ kid: string }[]>()
    expect(others).toEqual([])
    expect(next?.kid).not.toBe(own?.kid)
  })
})
