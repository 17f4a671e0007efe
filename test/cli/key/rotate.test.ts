// Data keys that are replaced while workers run: every job ends well, and rows name the new version afterwards.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import type { Client } from '../../../producers/client.ts'
import type { By } from '../../../src/acts/act.ts'
import { grantCaptureKey, NEW_CAPTURE_KEY } from '../../../src/acts/grants.ts'
import { FULL_SEALS } from '../../../src/acts/key/due-keys.ts'
import { beginRotation, finishRotation } from '../../../src/acts/key/key-rotation.ts'
import { openLog } from '../../../src/log.ts'
import { pageOf } from '../../../src/metrics.ts'
import * as captureKeys from '../../../src/store/access/capture-keys.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as processes from '../../../src/store/access/processes.ts'
import { openStore } from '../../../src/store/pool.ts'
import { makeCaptureKey } from '../../../src/vault/capture/capture-key.ts'
import { readPublicCaptureKey } from '../../../src/vault/capture/encrypt.ts'
import { SEALS } from '../../../src/vault/ring/held-keys.ts'

import { replaceFullKeys } from '../../../workers/process/full-keys.ts'
import { runCommand } from '../../support/command.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { testPan } from '../../support/test-pan.ts'
import { writeBatch } from '../../support/write-batch.ts'
import { putIntoUse } from '../../vault/write-lives.ts'
import { cli } from '../command-bench.ts'

describeOnRedis('tokenmill key', engine => {
  let installation: Installation
  let client: Client
  beforeAll(async () => {
    installation = await openInstallation(engine)
    client = await installation.connect()
  })
  afterAll(() => installation?.close())

  const key = async (...words: string[]) => runCommand(['key', ...words], { env: installation.env })
  const states = async (purpose: string) => {
    const keys = await dataKeys.list(installation.vault.store)
    return keys.filter(one => one.purpose === purpose).map(one => `${one.version} ${one.state}`)
  }
  const versions = async () => {
    const { rows } = await installation.vault.store.query<{ version: number }>({
      text: 'select distinct seal_version as version from tokenmill.token order by 1',
    })
    return rows
  }

  /** Adds the row of a live worker that holds these keys. */
  const addProcess = async (keys: readonly string[]) => {
    const process = {
      processId: randomUUID(),
      role: 'bulk' as const,
      host: 'old-host',
      version: '0.3.0',
      kinds: ['token-batch'],
      features: [],
      connections: 10,
      keys,
    }
    await processes.see(installation.vault.store, process)
    return process
  }
  const audited = async () => {
    const { rows } = await installation.vault.store.query({
      text: `select action, subject, detail from tokenmill.audit where action = 'data-key.rotate' and subject = 'seal' order by audit_id`,
    })
    return rows
  }

  it('workers reserve few seals at their start, and none for network tokens where no provider makes them', async () => {
    const { store } = installation.vault
    const reserved = async () => new Map((await dataKeys.list(store)).map(one => [one.purpose, one.seals]))
    const before = await reserved()
    const workers = await installation.openWorkers({ roles: ['interactive'] })
    const after = await reserved()
    await workers.close()
    expect(after.get('seal')).toBe((before.get('seal') ?? 0) + SEALS.first)
    expect(after.get('network-token')).toBe(before.get('network-token'))
  })

  it('rotate refuses what is no purpose', async () => {
    expect(await key('rotate', 'card')).toMatchObject({
      code: 64,
      stderr: expect.stringMatching('the purposes are seal,'),
    })
    expect(await audited()).toEqual([])
  })

  it('rotate goes on where a run of it was killed', async () => {
    const process = await addProcess(['webhook/1'])
    const killed = startCommand(['key', 'rotate', 'webhook'], { env: installation.env })
    await killed.line(/Waiting for 1 process to load it: old-host \(bulk\)\./, { stream: 'stderr' })
    await killed.kill9()
    expect(await states('webhook')).toEqual(['1 ACTIVE', '2 PENDING'])
    await processes.see(installation.vault.store, { ...process, keys: ['webhook/1', 'webhook/2'] })
    const { code, stdout, stderr } = await key('rotate', 'webhook')
    expect({ code, stdout: stdout.trim(), stderr: stderr.trim() }).toEqual({
      code: 0,
      stdout: 'webhook/2 is in use, on every host within 5 s; webhook/1 opens what it sealed before.',
      stderr: 'webhook/2 was made before; going on with it.',
    })
    expect(await states('webhook')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
    await processes.leave(installation.vault.store, process)
  })

  it('rotate waits for no row that a gateway wrote, unless gateways know the key, and then goes on without it', async () => {
    const { store } = installation.vault
    const url = installation.env['DATABASE_URL'] as string
    const gateway = openStore(url, { log: openLog('silent'), connectionsMax: 1, role: 'tokenmill_gateway' })
    try {
      for (const role of ['bulk', 'interactive', 'three-ds', 'gateway'])
        await expect(
          gateway.query({
            text: `insert into tokenmill.process (process_id, role, host, version, connections, keys, seen_at)
values (gen_random_uuid(), $1, 'nowhere', '1', 1, '{}', 'infinity')`,
            values: [role],
          }),
        ).rejects.toMatchObject({ code: '42501' })
      const silent = { processId: randomUUID(), role: 'gateway', host: 'taken-over', version: '1' } as const
      await processes.see(gateway, { ...silent, kinds: [], features: [], connections: 1, keys: [] })
      expect(await key('rotate', 'owner')).toMatchObject({ code: 0, stderr: 'owner/2 is made.\n' })
      expect(await key('rotate', 'owner', '--without', 'all')).toMatchObject({ code: 64 })
      expect(await key('rotate', 'intake', '--without', 'taken-over')).toMatchObject({ code: 64 })
      const rotating = startCommand(['key', 'rotate', 'intake'], { env: installation.env })
      await rotating.line(new RegExp(`Not yet: ${silent.processId} \\(taken-over, seen .* ago\\)\\. .*--without`), {
        stream: 'stderr',
      })
      await rotating.kill9()
      expect(await states('intake')).toEqual(['1 ACTIVE', '2 PENDING'])
      await processes.see(gateway, { ...silent, kinds: [], features: [], connections: 1, keys: [] })
      const without = ['--without', randomUUID(), '--without', silent.processId]
      expect(await key('rotate', 'intake', ...without)).toMatchObject({ code: 0 })
      expect(await states('intake')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
      const { rows } = await store.query<{ without: string[] }>({
        text: `select detail -> 'without' as without from tokenmill.audit
where action = 'data-key.rotate' and subject = 'intake' and detail ->> 'step' = 'finish'`,
      })
      expect(rows).toEqual([{ without: [without[1], without[3]] }])
      await processes.see(gateway, { ...silent, kinds: [], features: [], connections: 1, keys: [] })
      const compromised = ['compromise', 'api-key', '--yes', '--json']
      const ended = startCommand(['key', ...compromised], { env: installation.env })
      await ended.line(/Waiting until no process uses the former key/, { stream: 'stderr' })
      await ended.kill9()
      expect(await states('api-key')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
      await processes.leave(gateway, silent)
    } finally {
      await gateway.close()
    }
  })

  it('rotate by an operator and rotate by another at once make one new key', async () => {
    const by: By = { actor: { kind: 'machine', id: 'test' }, reason: undefined }
    const begun = await Promise.all([1, 2, 3].map(() => beginRotation(installation.vault, 'before-image', by)))
    expect(begun.filter(({ isNew }) => isNew)).toHaveLength(1)
    const ended = await Promise.all(
      begun.map(({ version }) => finishRotation(installation.vault, { purpose: 'before-image', version }, by)),
    )
    expect(ended.filter(one => 'done' in one)).toHaveLength(1)
    expect(await states('before-image')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
  })

  it('a key that has made its share of seals is replaced by itself, once all processes hold the new one', async () => {
    const { store } = installation.vault
    const rotating = { ...installation.vault, log: installation.session.log }
    await replaceFullKeys(rotating)
    expect(await states('three-ds')).toEqual(['1 ACTIVE'])
    await store.query({
      text: `update tokenmill.data_key set seals = $1 where purpose in ('three-ds', 'analytics')`,
      values: [FULL_SEALS],
    })
    const process = await addProcess(['three-ds/1'])
    await replaceFullKeys(rotating)
    expect(await states('three-ds')).toEqual(['1 ACTIVE', '2 PENDING'])
    await processes.leave(store, process)
    await replaceFullKeys(rotating)
    await replaceFullKeys(rotating)
    expect(await states('three-ds')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
    expect(await states('analytics')).toEqual(['1 ACTIVE'])
  })

  it('list shows each key with its age and its seals, and status names those that are due', async () => {
    const { store } = installation.vault
    await store.query({
      text: `update tokenmill.data_key set activated_at = now() - interval '340 days', seals = 0, created_at = now() - interval '341 days'
where purpose = 'seal'`,
    })
    const shown = await key('list', '--json')
    const keys = z.array(z.looseObject({ purpose: z.string(), version: z.number() })).parse(JSON.parse(shown.stdout))
    expect(keys.filter(({ purpose }) => purpose === 'webhook')).toMatchObject([
      { version: 1, state: 'DECRYPT_ONLY', retired_at: expect.any(String), replace_by: null },
      { version: 2, state: 'ACTIVE', age_days: 0, kek_id: installation.vault.keks.current.id },
    ])
    const seal = keys.find(({ purpose }) => purpose === 'seal')
    const replaceBy = new Date(Date.now() + 25 * 86_400_000).toISOString().slice(0, 10)
    expect(seal).toMatchObject({ age_days: 341, seals_reserved: 0, replace_by: expect.stringMatching(replaceBy) })
    const table = (await key('list')).stdout
    expect(table).toMatch(/^key +state +kek +age +seals reserved +replace by\n/)
    expect(table).toMatch(new RegExp(`\nseal/1 +ACTIVE +kek-[0-9a-f]+ +341 d +0 +${replaceBy}\n`))
    const status = await cli(['status', '--json'], { env: installation.env })
    const { checks } = z
      .object({ checks: z.array(z.looseObject({ name: z.string() })) })
      .parse(JSON.parse(status.stdout))
    expect(checks.find(({ name }) => name === 'vault keys')).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(`seal/1 should be replaced by ${replaceBy}`),
      next: '`tokenmill key rotate seal`',
    })
  })

  it('a job that needs a key which its worker has not read yet does not fail, nor is it tried a second time', async () => {
    const { store, ring, halves } = installation.vault
    const workers = await installation.openWorkers({ roles: ['interactive'] })
    await putIntoUse(installation.vault, 'private-half')
    await ring.refresh()
    const { alias, publicKey, type, ...half } = await makeCaptureKey('jwe-rsa', 'of-now', halves)
    expect(half.privateVersion).toBe(2)
    await captureKeys.insert(store, { alias, publicKey, type, ...half, entityId: ENTITY })
    await grantCaptureKey(store, ring, { ...NEW_CAPTURE_KEY, alias, publicKey, type, entityId: ENTITY })
    const jwe = await readPublicCaptureKey(alias, publicKey)
    const credentials = { ...installation.credentials, captureKeys: { jwe, pgp: undefined } }
    const other = await installation.connect({ credentials })
    const card = await other.encryptCard({ cardNumber: '5555555555554444', expiryMonth: 12, expiryYear: 2031 })
    const made = await other.call('token-create', { token_scope: installation.scope, ...card })
    expect(made.status).toBe('SUCCEEDED')
    // Closed, because it would take results that the other client waits for.
    await other.close()
    const page = await pageOf(await workers.snapshots())
    const retried = page.split('\n').filter(line => line.includes('_retries_total{') && !line.endsWith(' 0'))
    expect(retried).toEqual([])
    await workers.close()
  })

  it('rotate replaces the key of cards under running workers, and no job fails', async () => {
    await installation.openWorkers()
    const cards = (from: number) =>
      Array.from({ length: 50 }, (_, at) => ({ cardNumber: testPan(from + at), expiryMonth: 12, expiryYear: 2031 }))
    expect(new Set(await writeBatch(client, installation, cards(0)))).toEqual(new Set(['CREATED']))
    const outcomes: string[] = []
    let isRotating = true
    const rotated = key('rotate', 'seal', '--json', '--reason', 'yearly').finally(() => {
      isRotating = false
    })
    for (let from = 1000; isRotating; from += 50)
      outcomes.push(...(await writeBatch(client, installation, cards(from))))
    const { code, stdout, stderr } = await rotated
    expect({ code, stderr: stderr.split('\n')[0] }).toEqual({ code: 0, stderr: 'seal/2 is made.' })
    expect(JSON.parse(stdout)).toEqual({ purpose: 'seal', version: 2, former: 1 })
    expect(await states('seal')).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
    expect(new Set(outcomes)).toEqual(new Set(['CREATED']))
    // Bulk and interactive processes alike seal with it, and open what the former key sealed.
    const isInUse = async () => (await versions()).some(({ version }) => version === 2)
    for (let from = 500_000; ; from += 50) {
      expect(new Set(await writeBatch(client, installation, cards(from)))).toEqual(new Set(['CREATED']))
      if (await isInUse()) break
    }
    const single = await client.encryptCard({ cardNumber: testPan(0), expiryMonth: 11, expiryYear: 2032 })
    const again = await client.call('token-create', { token_scope: installation.scope, ...single })
    expect(again).toMatchObject({ status: 'SUCCEEDED', record: { expiry_month: 11 } })
    expect((await versions()).map(({ version }) => version)).toEqual([1, 2])
    expect(await audited()).toEqual([
      { action: 'data-key.rotate', subject: 'seal', detail: expect.objectContaining({ step: 'begin', version: 2 }) },
      {
        action: 'data-key.rotate',
        subject: 'seal',
        detail: expect.objectContaining({ step: 'finish', version: 2, former: 1, reason: 'yearly' }),
      },
    ])
  })
})
