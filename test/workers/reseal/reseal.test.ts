// Re-encryption while jobs run: no job fails, every token opens, and no row is left under the former key, also after a
// cancellation or a kill.
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../../producers/client.ts'
import type { Actor } from '../../../src/acts/act.ts'
import { beginReseal } from '../../../src/acts/key/reseal.ts'
import * as reseals from '../../../src/store/reseal/reseals.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { formatReuseToken } from '../../../src/token/token.ts'
import { workReseal } from '../../../workers/reseal/reseal.ts'
import { childrenRunning, kill9 } from '../../chaos/bundle.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { openSystemDesk, type Sent, type SystemDesk } from '../../support/system-requests.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'
import type { OpenedWorkers } from '../../support/workers.ts'
import { insertTokens, openAll } from './tokens.ts'
import { type TurnedVault, turnKey } from './turn-key.ts'

const TOKENS = 3_000
const OTHER_CARDS = 10_000
const BY = { actor: { kind: 'machine', id: 'test' } satisfies Actor, reason: undefined }
const AT_ONCE = {
  rowsPerSecondMax: 1_000_000,
  replicaLagMsMax: 10_000,
  workMsMax: 60_000,
  walBytesPerSecondMax: 1e12,
  writersMs: 0,
  retryMs: 0,
}

describeOnRedis('re-encryption', engine => {
  let installation: Installation
  let client: Client
  let desk: SystemDesk
  let workers: OpenedWorkers
  let turned: TurnedVault
  let ids: string[]
  let before: Map<string, tokens.StoredToken>
  let relinked: { sent: Sent; id: string }
  beforeAll(async () => {
    installation = await openInstallation(engine)
    const { vault, scope } = installation
    ids = await insertTokens(vault.store, vault.ring, scope, TOKENS)
    workers = await installation.openWorkers({ roles: ['interactive'] })
    client = await installation.connect()
    desk = await openSystemDesk(installation, 'gateway')
    relinked = await relink(ids[0] ?? '', OTHER_CARDS)
    await workers.close()
    before = await rows()
    turned = await turnKey(vault, 'seal')
    workers = await installation.openWorkers({ roles: ['interactive'] })
  })
  afterAll(async () => {
    await desk?.close()
    await installation?.close()
  })

  const rows = async () =>
    new Map((await tokens.findByIds(installation.vault.store, ids)).map(row => [row.tokenId, row]))
  const cardOf = (index: number, more = {}) =>
    client.encryptCard({ cardNumber: testPan(index), expiryMonth: 12, expiryYear: 2031, ...more })
  async function relink(id: string, index: number): Promise<{ sent: Sent; id: string }> {
    const sent = await desk.send('token-update', { id: formatReuseToken(id), ...(await cardOf(index)) })
    expect(await desk.answer(sent)).toMatchObject({ code: 200 })
    return { sent, id }
  }
  const deps = () => ({ ...installation.vault, ...turned, clock: Date.now, log: installation.session.log })
  const find = (purpose: string) => reseals.find(installation.vault.store, purpose)

  it('seals every token anew while others read and change them, and no job fails', async () => {
    const { store } = installation.vault
    expect(await beginReseal(store, 'seal', BY)).toEqual({ done: { version: turned.version, isResumed: false } })
    const worked = workReseal(deps(), { ...AT_ONCE, rowsPerSecondMax: 3_000 })
    const codes: number[] = []
    let ended = false
    let card = OTHER_CARDS
    const load = async (from: number) => {
      for (let n = from; !ended; n = (n + 7) % TOKENS) {
        card += 1
        const next = card
        const put = await client.call('token-create', {
          token_scope: installation.scope,
          ...(await cardOf(n, { expiryYear: 2032 })),
        })
        const id = ids[(n + 3) % TOKENS] ?? ''
        const other = await client.call('token-update', {
          id: formatReuseToken(id),
          ...(await cardOf(next)),
        })
        codes.push(put.code, other.code)
      }
    }
    const loads = [1, 501, 1_501, 2_501].map(load)
    expect(await worked).toBe('seal')
    ended = true
    await Promise.all(loads)
    expect(codes.length).toBeGreaterThanOrEqual(2 * loads.length)
    expect(new Set(codes)).toEqual(new Set([200]))
    expect(await find('seal')).toMatchObject({ state: 'DONE', passFound: 0, rowsDone: expect.any(Number) })
    expect(Object.keys(await openAll(store, turned.ring))).toEqual([String(turned.version)])
  })

  it('changes the sealed number and the count of versions, and nothing else of a row', async () => {
    const after = await rows()
    const untouched = [...before].filter(([id, row]) => after.get(id)?.lastReceipt === row.lastReceipt)
    expect(untouched.length).toBeGreaterThan(TOKENS / 2)
    for (const [id, row] of untouched) {
      expect(after.get(id)).toEqual({
        ...row,
        sealed: expect.any(Buffer),
        sealVersion: turned.version,
        version: row.version + 1,
      })
    }
  })

  it('lets a reversal put back a number from before it, which opens and names its key', async () => {
    expect(await desk.reverse(relinked.sent)).toBe('COMPLETED')
    const [row] = await tokens.findByIds(installation.vault.store, [relinked.id])
    expect(row).toMatchObject({ sealVersion: turned.version, lastFour: testPan(0).slice(-4) })
    const opened = turned.ring.open(
      row?.sealed ?? Buffer.alloc(0),
      row?.sealVersion ?? 0,
      row?.tokenId ?? '',
      row?.tokenScope ?? '',
    )
    expect(opened.reveal()).toBe(testPan(0))
  })

  it('goes on where a killed worker was, and seals no row twice', async () => {
    const { store } = installation.vault
    // Closed, because running workers read the new key only after some seconds.
    await workers.close()
    const again = await turnKey(installation.vault, 'seal')
    const bulk = await installation.startWorkers({
      script: fileURLToPath(new URL('worker.ts', import.meta.url)),
      processes: 1,
      roles: ['bulk'],
      env: { TOKENMILL_RESEAL_ROWS_PER_SECOND: '3000' },
    })
    expect(await beginReseal(store, 'seal', BY)).toMatchObject({ done: { isResumed: false } })
    const begun = await until(async () => {
      const row = await find('seal')
      return row && row.rowsDone > 500 ? row : undefined
    })
    kill9(childrenRunning('reseal/worker.ts'))
    await bulk.close()
    expect(begun).toMatchObject({ state: 'RUNNING', pass: 1, atColumn: 'token.sealed' })
    const other = { ...deps(), ...again }
    await until(() => workReseal(other, AT_ONCE), { what: 'the end of the lease' })
    const done = await find('seal')
    const counts = await openAll(store, again.ring)
    expect(Object.keys(counts)).toEqual([String(again.version)])
    expect(done).toMatchObject({ state: 'DONE', rowsDone: counts[again.version] })
  })
})
