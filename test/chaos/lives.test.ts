// Running workers whose stored lives of keys go back, as by a failover that lost an act on keys, or by the owner of the
// database: they go on by what they know, no card is written in a phase that they have left, and each job takes effect once.
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import { pageOf } from '../../src/metrics.ts'
import * as keyLives from '../../src/store/access/key-lives.ts'
import { withKeys, withPhase } from '../../src/vault/ring/key-lives.ts'
import { runCommand } from '../support/command.ts'
import { describeOnRedis } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type Child, startCommand } from '../support/process.ts'
import { testPan } from '../support/test-pan.ts'
import { until } from '../support/until.ts'
import type { OpenedWorkers } from '../support/workers.ts'
import { putIntoUse, writeLives } from '../vault/write-lives.ts'

describeOnRedis('workers whose stored lives of keys go back', engine => {
  let installation: Installation
  let workers: OpenedWorkers
  let client: Client
  let processes: string[] = []
  let card = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    workers = await installation.openWorkers()
    client = await installation.connect()
    const { rows } = await own(`select process_id from tokenmill.process where kinds <> '{}'`)
    processes = rows.map(row => (row as { process_id: string }).process_id)
  })
  afterAll(() => installation?.close())

  const own = (text: string, values: unknown[] = []) => installation.vault.store.query({ text, values })
  const find = async () => (await keyLives.find(installation.vault.store)) as keyLives.LivesRow
  const putBack = ({ epoch, keys, phase, proof }: keyLives.LivesRow) =>
    own('update tokenmill.key_lives set epoch = $1, keys = $2, phase = $3, proof = $4', [epoch, keys, phase, proof])
  async function create() {
    card += 1
    const encrypted = await client.encryptCard({ cardNumber: testPan(card), expiryMonth: 12, expiryYear: 2031 })
    return client.call('token-create', { token_scope: installation.scope, ...encrypted }, { timeoutMs: 600_000 })
  }
  /** Whether each of these workers' processes goes by this epoch; not those of another host, which may have been killed. */
  const isKnown = async (epoch: number) => {
    const { rows } = await own(
      `select count(*) filter (where key_epoch = $1)::int as known, count(*)::int as all_of
from tokenmill.process where process_id = any($2)`,
      [epoch, processes],
    )
    const [{ known, all_of: all } = { known: 0, all_of: -1 }] = rows as { known: number; all_of: number }[]
    return all > 0 && known === all
  }
  const isTold = async (value: 0 | 1) => {
    const page = await pageOf(await workers.snapshots())
    const lines = page.split('\n').filter(line => line.startsWith('tokenmill_key_lives_not_followed{'))
    return lines.length > 0 && lines.every(line => line.endsWith(` ${value}`))
  }
  const countTokens = async () =>
    Number((await own('select count(*) as n from tokenmill.token')).rows.map(r => (r as { n: string }).n)[0])

  it('they work on by what they have seen, and say so', async () => {
    expect(await create()).toMatchObject({ status: 'SUCCEEDED' })
    const former = await find()
    await putIntoUse(installation.vault, 'webhook')
    const { epoch } = await find()
    await until(() => isKnown(epoch))
    await putBack(former)
    await until(() => isTold(1))
    expect(await create()).toMatchObject({ status: 'SUCCEEDED' })
    expect(await isKnown(epoch)).toBe(true)
    const { code, stderr } = await runCommand(['key', 'rotate', 'webhook'], { env: installation.env })
    expect({ code, stderr }).toEqual({ code: 78, stderr: expect.stringContaining('no key turns') })
    const restored = await runCommand(['key', 'restored', '--yes'], { env: installation.env })
    expect(restored).toMatchObject({ code: 0 })
    await until(() => isTold(0))
    expect(await create()).toMatchObject({ status: 'SUCCEEDED' })
    expect(await countTokens()).toBe(card)
  })

  it('they write no card in a phase that they have left, until an operator says that it holds', async () => {
    const former = await find()
    await writeLives(installation.vault, now =>
      withPhase(
        withKeys(now, 'fingerprint', keys => keys),
        { ...now.phase, phase: 'SINGLE' },
      ),
    )
    const { epoch } = await find()
    await until(() => isKnown(epoch))
    await putBack(former)
    await until(() => isTold(1))
    const before = await countTokens()
    const created = create()
    const retries = async () => {
      const page = await pageOf(await workers.snapshots())
      return /tokenmill_retries_total\{[^}]*fault="contention"[^}]*\} [1-9]/.test(page)
    }
    await until(retries)
    expect(await countTokens()).toBe(before)
    expect(await runCommand(['key', 'restored', '--yes'], { env: installation.env })).toMatchObject({ code: 0 })
    expect(await created).toMatchObject({ status: 'SUCCEEDED' })
    expect(await countTokens()).toBe(before + 1)
  })

  it('and a host that missed a turning does not begin behind the others; each job takes effect once', async () => {
    const hostB = await mkdtemp(join(tmpdir(), 'tokenmill-host-b-'))
    const env = { ...installation.env, TOKENMILL_DATA_DIR: hostB, TOKENMILL_PROCESSES: '1' }
    const began: Child[] = []
    const startB = () => {
      const child = startCommand(['workers'], { env: { ...env, TOKENMILL_LOG_LEVEL: 'info' } })
      began.push(child)
      return child
    }
    try {
      await cp(join(installation.dataDir, 'system'), join(hostB, 'system'), { recursive: true })
      const before = await countTokens()
      const first = startB()
      await first.line(/"msg":"working"/, { stream: 'stderr' })
      expect(await create()).toMatchObject({ status: 'SUCCEEDED' })
      first.signal('SIGTERM')
      await first.exit

      const former = await find()
      await writeLives(installation.vault, now =>
        withPhase(
          withKeys(now, 'fingerprint', keys => keys),
          { ...now.phase },
        ),
      )
      const { epoch } = await find()
      await until(() => isKnown(epoch))
      // A failover loses the turning, and the host that was down during it comes back.
      await putBack(former)
      await until(() => isTold(1))
      const second = startB()
      expect((await second.exit).code).not.toBe(0)
      expect(second.stderr()).toContain('older than one that was seen before')
      const created = Promise.all(Array.from({ length: 5 }, create))
      expect(await runCommand(['key', 'restored', '--yes'], { env: installation.env })).toMatchObject({ code: 0 })
      await until(() => isTold(0))
      const third = startB()
      await third.line(/"msg":"working"/, { stream: 'stderr' })
      for (const each of await created) expect(each).toMatchObject({ status: 'SUCCEEDED' })
      expect(await create()).toMatchObject({ status: 'SUCCEEDED' })
      expect(await countTokens()).toBe(before + 7)
      // No card has two tokens, and each is under the phase that holds.
      const { rows } = await own(
        'select count(*)::int as cards, count(distinct token_id)::int as tokens from tokenmill.card',
      )
      expect(rows).toEqual([{ cards: before + 7, tokens: before + 7 }])
    } finally {
      for (const child of began) await child.kill9()
      await rm(hostB, { recursive: true, force: true })
    }
  })
})
