// What the owner of the database does to the lives of keys, while processes run and when they start again: a rotated key doesn't
// seal again, a destroyed one doesn't open, and what can't be believed is named. Then the honest case: a restored backup.
import { readFile, rm } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { ringSource } from '../../../cli/open/key-ring.ts'
import { keptLivesPath, lastingLives, storedLives } from '../../../cli/open/known-lives.ts'
import type { OpenedVault } from '../../../cli/open/open.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as keyLives from '../../../src/store/access/key-lives.ts'
import { livesOf, setting, withKeys } from '../../../src/vault/ring/key-lives.ts'
import { type LiveRing, openLiveRing } from '../../../src/vault/ring/key-ring.ts'
import { runCommand } from '../../support/command.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { putIntoUse, writeLives } from '../../vault/write-lives.ts'
import { cli } from '../command-bench.ts'
import { openTwoOperators } from './two-operators.ts'

describeOnRedis('the lives of keys', engine => {
  let installation: Installation
  let vault: OpenedVault
  beforeAll(async () => {
    installation = await openInstallation(engine)
    vault = installation.vault
    await putIntoUse(vault, 'before-image')
    await putIntoUse(vault, 'seal')
  })
  afterAll(() => installation?.close())
  // Each test leaves the row that it found.
  let row: keyLives.LivesRow
  afterEach(async () => {
    if (row) await own('update tokenmill.key_lives set epoch = $1, keys = $2, phase = $3, proof = $4', rowValues(row))
  })

  const own = (text: string, values: unknown[] = []) => vault.store.query({ text, values })
  const rowValues = ({ epoch, keys, phase, proof }: keyLives.LivesRow) => [epoch, keys, phase, proof]
  const find = async () => (await keyLives.find(vault.store)) as keyLives.LivesRow
  /** As another process of this host opens its ring. */
  const openRing = (): Promise<LiveRing> =>
    openLiveRing(
      vault.keks,
      ringSource(vault.store, lastingLives(vault, installation.dataDir, installation.session.log)),
    )
  const key = (...words: string[]) => runCommand(['key', ...words], { env: installation.env })
  const doctor = async () => {
    const { stdout } = await cli(['doctor', '--json'], { env: installation.env })
    const { checks } = z
      .object({ checks: z.array(z.object({ name: z.string(), state: z.string(), says: z.string() })) })
      .parse(JSON.parse(stdout))
    return checks.find(({ name }) => name === 'lives of keys')
  }

  it('a rotated key that the table of keys calls ACTIVE seals nothing, and doctor names it', async () => {
    row = await find()
    await own(`update tokenmill.data_key set state = 'DECRYPT_ONLY' where purpose = 'seal'`)
    await own(`update tokenmill.data_key set state = 'ACTIVE' where purpose = 'seal' and version = 1`)
    const ring = await openRing()
    await ring.reserve('before-image')
    expect(ring.sealBeforeImage(Buffer.from('{}'), crypto.randomUUID()).keyVersion).toBe(2)
    expect(await doctor()).toMatchObject({
      state: 'warning',
      says: expect.stringContaining('something else of seal/1 (DECRYPT_ONLY), seal/2 (ACTIVE)'),
    })
    await own(`update tokenmill.data_key set state = 'DECRYPT_ONLY' where purpose = 'seal'`)
    await own(`update tokenmill.data_key set state = 'ACTIVE' where purpose = 'seal' and version = 2`)
    expect(await doctor()).toMatchObject({ state: 'well' })
  })

  it('a destroyed key whose copy is put back opens nothing', async () => {
    row = await find()
    const { rows } = await own(`select wrapped from tokenmill.data_key where purpose = 'before-image' and version = 1`)
    await writeLives(vault, now => withKeys(now, 'before-image', setting(1, { state: 'DESTROYED' })))
    await dataKeys.setState(vault.store, { purpose: 'before-image', version: 1, state: 'DESTROYED' })
    await own(
      `update tokenmill.data_key set state = 'DECRYPT_ONLY', wrapped = $1 where purpose = 'before-image' and version = 1`,
      [z.object({ wrapped: z.instanceof(Buffer) }).parse(rows[0]).wrapped],
    )
    expect((await openRing()).names()).not.toContain('before-image/1')
    expect(await doctor()).toMatchObject({ says: expect.stringContaining('before-image/1 (DESTROYED)') })
    row = await find()
  })

  it('an ended compromise that the table opens again stays ended', async () => {
    row = await find()
    await writeLives(vault, now =>
      withKeys(now, 'seal', (keys, epoch) => setting(1, { compromised: epoch, exposed: true, ended: true })(keys)),
    )
    row = await find()
    await own(`update tokenmill.data_key set compromised_at = null, exposed_at = null, compromise_ended_at = null`)
    const lives = storedLives(vault)
    expect(livesOf(await lives.read(), 'seal')[0]).toMatchObject({ ended: true })
    expect(await doctor()).toMatchObject({ state: 'warning', says: expect.stringContaining('seal/1') })
  })

  it('a former row is believed by no process that has seen a later one, after a restart either, and no key turns', async () => {
    const former = await find()
    await putIntoUse(vault, 'three-ds')
    row = await find()
    await openRing()
    await own('update tokenmill.key_lives set epoch = $1, keys = $2, phase = $3, proof = $4', rowValues(former))
    const ring = await openRing()
    expect(ring.names()).toContain('three-ds/2')
    expect(await doctor()).toMatchObject({
      state: 'critical',
      says: expect.stringMatching(
        /older than one that was seen before.*three-ds\/1 DECRYPT_ONLY → ACTIVE, three-ds\/2 ACTIVE → not there/,
      ),
    })
    const rotated = await key('rotate', 'webhook')
    expect(rotated).toMatchObject({ code: 78, stderr: expect.stringContaining('no key turns') })
  })

  it('a row that nobody with the key-encryption key wrote is believed by nobody, where nothing is kept either', async () => {
    row = await find()
    await own(`update tokenmill.key_lives set keys = replace(keys, 'DECRYPT_ONLY', 'PENDING')`)
    expect((await openRing()).names()).toContain('seal/2')
    const path = keptLivesPath(installation.dataDir)
    const kept = await readFile(path)
    await rm(path)
    const lost = await key('list')
    expect(lost).toMatchObject({ code: 0 })
    const turned = await key('rotate', 'webhook')
    expect(turned.code).not.toBe(0)
    expect(kept.toString()).toContain(vault.installationId)
  })

  it('a host that has kept nothing does not begin behind what live processes have seen', async () => {
    row = await find()
    const epoch = row.epoch + 5
    await rm(keptLivesPath(installation.dataDir), { force: true })
    await own(
      `insert into tokenmill.process (process_id, role, host, version, kinds, connections, key_epoch)
values (gen_random_uuid(), 'bulk', 'elsewhere', '1.0.0', '{token-batch}', 1, $1)`,
      [epoch],
    )
    await expect(openRing()).rejects.toEqual(expect.objectContaining({ code: 'key_unavailable' }))
    await own(`delete from tokenmill.process where host = 'elsewhere'`)
    expect((await openRing()).names()).toContain('seal/2')
  })

  it('a restored backup holds once an operator says so, and two where it brings a destroyed key back', async () => {
    const operators = await openTwoOperators(installation)
    const former = await find()
    await writeLives(vault, now => withKeys(now, 'digest', setting(1, { state: 'DECRYPT_ONLY' })))
    const other = await find()
    await own('update tokenmill.key_lives set epoch = $1, keys = $2, phase = $3, proof = $4', rowValues(former))
    expect(other.epoch).toBeGreaterThan(former.epoch)
    const before = await openRing().catch(() => undefined)
    expect(before).toBeUndefined()
    const restored = await key('restored', '--yes', '--json', ...operators.signed)
    expect(restored).toMatchObject({ code: 0, stderr: expect.stringContaining('digest/1 DECRYPT_ONLY → ACTIVE') })
    expect(JSON.parse(restored.stdout)).toEqual({
      epoch: other.epoch + 1_000,
      takes_back: ['digest/1 DECRYPT_ONLY → ACTIVE'],
    })
    expect((await openRing()).names()).toContain('digest/1')
    row = await find()
    expect(await key('restored', '--yes', ...operators.signed)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is nothing to do'),
    })
  })
})
