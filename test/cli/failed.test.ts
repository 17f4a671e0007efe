// `tokenmill failed`, with copies of failed jobs such as workers make.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Credentials } from '../../producers/client/client-file.ts'
import { signAsk } from '../../producers/envelope.ts'
import { findFailed } from '../../producers/operate/failed-set.ts'
import { discardFailed, retryFailed } from '../../src/acts/failed.ts'
import { isRefusal } from '../../src/errors.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { type FailedCopy, failedDiscard, failedList, moveToFailed } from '../../src/queue/failed.ts'
import * as clients from '../../src/store/access/clients.ts'
import { withoutCard } from '../../workers/process/housekeeping.ts'
import { describeEngines } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { cli as runCli } from './command-bench.ts'

const NOBODY = '00000000-0000-4000-8000-000000000000'
const DAY_MS = 86_400_000

describeEngines('the failed set', engine => {
  let installation: Installation
  let other: Awaited<ReturnType<Installation['addClient']>>
  let boss: Awaited<ReturnType<Installation['addClient']>>
  beforeAll(async () => {
    installation = await openInstallation(engine)
    other = await installation.addClient('other')
    boss = await installation.addClient('boss', { roles: ['ADMIN'] })
  })
  afterAll(() => installation?.close())
  beforeEach(async () => {
    for (const kind of ['token-lifecycle', 'report', 'token-create']) {
      for (const { id } of await failedList(installation.queues, kind))
        await failedDiscard(installation.queues, kind, id)
    }
  })

  const cli = (...words: string[]) => runCli(['failed', ...words], { env: installation.env })
  const REQUESTS = {
    'token-lifecycle': { id: NOBODY, action: 'SUSPEND' },
    report: { report_type: 'BATCH_REPORT', entity_id: NOBODY, parameters: { batchId: 'b' }, mime_type: 'text/csv' },
  } as const
  interface Failing {
    kind?: keyof typeof REQUESTS
    credentials?: Credentials
    signedAt?: number
    copy?: Partial<FailedCopy>
    emptied?: boolean
  }
  const fail = async (failing: Failing = {}) => {
    const { kind = 'token-lifecycle', credentials = installation.credentials, signedAt = Date.now() } = failing
    const ask = { kind, request: REQUESTS[kind] }
    const jti = `failed-${randomUUID()}`
    const signed = await signAsk(credentials, ask, { jti, reference: 'shopper 7' }, signedAt)
    if (isRefusal(signed)) throw new Error(signed.reason)
    const { clientId } = credentials.signingKey
    const copy: FailedCopy = {
      jws: signed.data.jws,
      kind,
      code: 'contention',
      attempt: 8,
      failedAt: signedAt,
      jobId: signed.id,
      clientId,
      jti,
      reference: 'shopper 7',
      ...failing.copy,
    }
    const kept = failing.emptied ? withoutCard({ ...copy, block: 'ciphertext' }) : copy
    const id = await moveToFailed(installation.queues, kind, { id: signed.id, enqueuedAt: 1 }, kept)
    return { id, jti, jws: signed.data.jws, jobId: signed.id }
  }
  const audits = async (subject: string) =>
    (
      await installation.vault.store.query<{ actor: string; action: string; detail: Record<string, unknown> }>({
        text: 'select actor, action, detail from tokenmill.audit where subject = $1 order by audit_id',
        values: [subject],
      })
    ).rows

  it('finds a job by its id without reading the others', async () => {
    const { id } = await fail({ kind: 'report' })
    const list = () => Promise.reject(new Error('the set was read'))
    const sources = {
      store: installation.vault.store,
      queues: { ...installation.queues, list },
      catalogue: CATALOGUE,
      now: Date.now(),
    }
    expect(await findFailed({ ids: [id, id] }, sources)).toMatchObject([{ id, kind: 'report' }])
    expect(await findFailed({ ids: [id], kind: 'token-create' }, sources)).toEqual([])
    expect(await findFailed({ ids: ['wait'] }, sources)).toEqual([])
  })

  it('shows a job without its envelope: whose it was, why it failed, and that it can be retried', async () => {
    const { id, jti, jws } = await fail()
    const { stdout } = await cli('show', id)
    for (const line of [
      /^kind +token-lifecycle$/m,
      /^fault +contention: Other jobs changed the same rows/m,
      /^client +first \(.+\)$/m,
      new RegExp(`^jti +${jti}$`, 'm'),
      /^reference +shopper 7$/m,
      /^attempts +8$/m,
      /^can be retried +yes$/m,
    ])
      expect(stdout).toMatch(line)
    for (const { stdout: said } of [await cli('show', id, '--json'), await cli('list'), await cli('list', '--json')])
      expect(said).not.toContain(jws.split('.')[1])
    expect(stdout).not.toContain(jws.split('.')[1])
    expect(await cli('show', 'f_none')).toMatchObject({ status: 1 })
  })

  it('is filtered by kind, fault, client and time', async () => {
    const now = Date.now()
    const old = await fail({ signedAt: now - 2 * DAY_MS })
    const report = await fail({ kind: 'report', copy: { code: 'files_away' } })
    const others = await fail({ credentials: other.credentials })
    const legacy = await fail()
    const found = async (...words: string[]) =>
      (await cli('list', ...words, '--json')).json<{ id: string }[]>().map(({ id }) => id)
    const yesterday = new Date(now - DAY_MS).toISOString()
    expect(await found()).toEqual([old.id, others.id, legacy.id, report.id])
    expect(await found('--kind', 'report')).toEqual([report.id])
    expect(await found('--fault', 'files_away')).toEqual([report.id])
    expect(await found('--client', 'other')).toEqual([others.id])
    expect(await found('--client', other.credentials.signingKey.clientId)).toEqual([others.id])
    expect(await found('--until', yesterday)).toEqual([old.id])
    expect(await found('--since', yesterday, '--kind', 'token-lifecycle')).toEqual([others.id, legacy.id])
    expect(await cli('list', '--kind', 'nothing')).toMatchObject({ status: 64 })
    expect(await cli('list', '--fault', 'nothing')).toMatchObject({ status: 64 })
    expect(await cli('list', '--client', 'nobody')).toMatchObject({ status: 1 })
  })

  it('says why a job can’t be retried, before it is tried and when it is', async () => {
    const { credentials } = await installation.addClient(`gone-${randomUUID().slice(0, 8)}`)
    const revoked = await fail({ credentials })
    await clients.revoke(installation.vault.store, credentials.signingKey.clientId)
    const expired = await fail({ signedAt: Date.now() - 2 * DAY_MS })
    const emptied = await fail({ emptied: true })
    const fine = await fail()
    const whys = { [revoked.id]: 'client_revoked', [expired.id]: 'expired', [emptied.id]: 'card_data_removed' }
    for (const [id, why] of Object.entries(whys))
      expect((await cli('show', id, '--json')).json()).toMatchObject({ can_be_retried: false, why_not: why })
    expect((await cli('show', emptied.id)).stdout).toMatch(/can be retried +no: its card data were removed/)
    expect((await cli('show', emptied.id)).stdout).toMatch(/client +first/)
    expect((await cli('retry', '--dry-run', '--json')).json()).toEqual([
      { kind: 'token-lifecycle', would_go: 1, card_data_removed: 1, expired: 1, client_revoked: 1 },
    ])
    expect(await failedList(installation.queues, 'token-lifecycle')).toHaveLength(4)
    const retried = await cli('retry', '--json')
    expect(retried.status).toBe(3)
    expect(retried.json()).toMatchObject({ retried: [fine.id], submit_again: [emptied.id] })
    expect(await failedList(installation.queues, 'token-lifecycle')).toHaveLength(3)
    expect(await audits(emptied.id)).toEqual([])
    await installation.queues.obliterate('token-lifecycle')
  })

  it('is retried by filter, and an operator proves each act', async () => {
    const mine = await fail()
    const others = await fail({ credentials: other.credentials })
    const words = ['--client', 'other', '--reason', 'the store was full', '--operator', boss.clientFile]
    expect(await cli('retry', ...words)).toMatchObject({ status: 0, stdout: '1 sent again\n' })
    expect((await installation.queues.get('token-lifecycle', others.jobId))?.data).toEqual({ jws: others.jws })
    const [row] = await audits(others.id)
    expect(row).toMatchObject({
      actor: `client:${boss.credentials.signingKey.clientId}`,
      action: 'failed.retry',
      detail: {
        kind: 'token-lifecycle',
        client_id: other.credentials.signingKey.clientId,
        reason: 'the store was full',
        proof: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      },
    })
    expect(JSON.stringify(row)).not.toContain('shopper 7')
    expect(await cli('retry', '--operator', other.clientFile)).toMatchObject({ status: 78 })
    expect((await failedList(installation.queues, 'token-lifecycle')).map(({ id }) => id)).toEqual([mine.id])
    await installation.queues.obliterate('token-lifecycle')
  })

  it('loses nothing to an act that is killed after its audit row, and the act can be done again', async () => {
    const { id, jobId } = await fail()
    const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
    const { store } = installation.vault
    const { queues } = installation
    const die = () => {
      throw new Error('killed')
    }
    const name = { kind: 'token-lifecycle', id }
    const deps = { store, queues: { ...queues, add: die, remove: die }, now: Date.now() }
    await expect(retryFailed(name, by, deps)).rejects.toThrow('killed')
    await expect(discardFailed(name, by, deps)).rejects.toThrow('killed')
    expect(await audits(id)).toHaveLength(2)
    expect(await failedList(queues, 'token-lifecycle')).toHaveLength(1)
    const two = await Promise.all([1, 2].map(() => retryFailed(name, by, { ...deps, queues })))
    expect(two.filter(verdict => 'done' in verdict).length).toBeGreaterThanOrEqual(1)
    expect(await retryFailed(name, by, { ...deps, queues })).toEqual({ refused: 'gone' })
    expect(await queues.has('token-lifecycle', jobId)).toBe(true)
    expect(await queues.depth('token-lifecycle')).toMatchObject({ waiting: 1 })
    await queues.obliterate('token-lifecycle')
  })

  it('loses what is discarded, which needs a reason and a choice', async () => {
    const one = await fail()
    const two = await fail({ kind: 'report' })
    expect(await cli('discard', one.id)).toMatchObject({ status: 64 })
    expect(await cli('discard', '--reason', 'a test')).toMatchObject({ status: 64 })
    expect(await cli('discard', one.id, 'f_none', '--reason', 'a test')).toMatchObject({ status: 1 })
    expect(await failedList(installation.queues, 'token-lifecycle')).toHaveLength(1)
    expect((await cli('discard', one.id, '--reason', 'sent by hand', '--json')).json()).toEqual({ discarded: [one.id] })
    expect((await cli('discard', '--kind', 'report', '--reason', 'old', '--json')).json()).toEqual({
      discarded: [two.id],
    })
    expect((await cli('list', '--json')).json()).toEqual([])
    expect(await audits(one.id)).toMatchObject([
      { actor: expect.stringMatching(/^machine:.+@/), action: 'failed.discard', detail: { reason: 'sent by hand' } },
    ])
    expect(await installation.queues.has('token-lifecycle', one.jobId)).toBe(false)
  })
})
