// How recorded acts on failed jobs are done, and what their ends say, where no other worker takes part.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { doFailedActs } from '../../../src/acts/failed-acts.ts'
import { Fault } from '../../../src/errors.ts'
import type { FailedActName } from '../../../src/job/system/failed-act.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import * as failedActs from '../../../src/store/person/failed-acts.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { failCopy, KIND } from './failed-copies.ts'

const HOUR_MS = 3_600_000

describeStore('recorded acts on failed jobs', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine, { TOKENMILL_LOG_LEVEL: 'silent' })
  })
  afterAll(() => installation?.close())
  beforeEach(() => rows('delete from tokenmill.failed_act'))

  const rows = async <R = Record<string, unknown>>(text: string, ...values: unknown[]) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const turn = (queues: Queues = installation.queues) =>
    doFailedActs({ store: installation.vault.store, queues }, Date.now)
  const due = () => rows('update tokenmill.failed_act set due_at = now() where outcome is null')
  const outcomes = async () =>
    (await rows<{ outcome: string | null }>('select outcome from tokenmill.failed_act order by act_no')).map(
      ({ outcome }) => outcome,
    )
  const fail = () => failCopy(installation.queues, { credentials: installation.credentials })

  async function record(action: FailedActName, ids: readonly string[]): Promise<void> {
    const [row] = await rows<{ id: number }>(
      `insert into tokenmill.audit (actor, action, subject) values ('person:x', $1, 'all') returning audit_id as id`,
      action,
    )
    const copies = ids.map(copyId => ({ copyId, auditId: row?.id as number, outcome: null }))
    await failedActs.insertAll(installation.vault.store, { nonce: randomUUID(), action, kind: KIND, copies })
  }

  it('are not counted as tried while the queues are away', async () => {
    const { id } = await fail()
    await record('failed.retry', [id])
    await record('failed.discard', [id])
    const away = () => Promise.reject(new Fault('queue_away'))
    const broken = { ...installation.queues, get: away, remove: away, add: away }
    await expect(turn(broken)).rejects.toThrow()
    await expect(turn(broken)).rejects.toThrow()
    await due()
    await turn()
    expect(await outcomes()).toEqual(['done', 'gone'])
  })

  it('are not done where another act is known to have taken the copy', async () => {
    const { id } = await fail()
    await record('failed.retry', [id])
    await turn()
    await record('failed.discard', [id])
    // A worker that began it, and died.
    await rows('update tokenmill.failed_act set tries = 1 where outcome is null')
    await turn()
    expect(await outcomes()).toEqual(['done', 'gone'])
  })

  it('are done in turns, so that a worker can stop between them', async () => {
    await record(
      'failed.discard',
      Array.from({ length: 130 }, (_, n) => `f_${n}`),
    )
    await turn()
    expect((await outcomes()).filter(outcome => outcome !== null)).toHaveLength(100)
    await turn()
    expect(await outcomes()).not.toContain(null)
  })

  it('are kept until they have ended, however old', async () => {
    const { id } = await fail()
    await record('failed.discard', ['f_gone'])
    await turn()
    await record('failed.retry', [id])
    await rows(`update tokenmill.failed_act set begun_at = now() - interval '3 days'`)
    expect(await failedActs.eraseOld(installation.vault.store, Date.now() - 48 * HOUR_MS)).toBe(1)
    await turn()
    expect(await outcomes()).toEqual(['done'])
    expect(await failedActs.eraseOld(installation.vault.store, Date.now() - 48 * HOUR_MS)).toBe(1)
  })
})
