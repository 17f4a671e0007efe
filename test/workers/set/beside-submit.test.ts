// Thousands of jobs that were submitted, and jobs for which somebody waits: they find few of the others before them.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../../bin/sample/pan.ts'
import { describeEngines } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'

/** So many are unanswered all the while. */
const SUBMITTED = 600
const ASKED = 10
/** Until a worker knows that somebody waits, it has 64 of the others in hand, and ends as many as it can. */
const BEFORE_MAX = 256

describeEngines('a job for which somebody waits, beside thousands that were submitted', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(async () => {
    await installation?.close()
  })

  it('is done before nearly all of them', async () => {
    const { scope: token_scope } = installation
    const clients = [await installation.connect({ replyTo: 'file' }), await installation.connect({ replyTo: 'shop' })]
    const [file, shop] = clients as [(typeof clients)[0], (typeof clients)[0]]
    const requestOf = async (index: number) => ({
      token_scope,
      ...(await file.encryptCard({ cardNumber: panOf(index, 83), expiryMonth: 12, expiryYear: 2031 })),
    })
    const items = await Promise.all(
      Array.from({ length: SUBMITTED }, async (_, index) => ({
        kind: 'token-create' as const,
        request: await requestOf(index),
      })),
    )
    const asked = await Promise.all(Array.from({ length: ASKED }, (_, index) => requestOf(SUBMITTED + index)))
    let given = 0
    let answered = 0
    let isOver = false
    /** The same cards again and again, so that jobs are left for as long as somebody waits, however fast the worker is. */
    function* submitted() {
      for (;;)
        for (const item of items) {
          if (isOver) return
          given += 1
          yield item
        }
    }
    const working = (async () => {
      for await (const { result } of file.bulk(submitted(), { inFlight: SUBMITTED }))
        if (result.status === 'SUCCEEDED') answered += 1
    })()
    const waiting = async () => (await installation.queues.depth('token-create')).waiting
    await until(async () => (await waiting()) === SUBMITTED, { what: 'all jobs to wait' })
    const workers = await installation.startWorkers({ roles: ['interactive'] })
    const count = async (text: string, values: unknown[] = []) => {
      const { rows } = await installation.vault.store.query<{ n: number }>({
        text: `select count(*)::int as n from tokenmill.outbox ${text}`,
        values,
      })
      return rows[0]?.n ?? 0
    }
    await until(() => count(''), { what: 'the first jobs to be done' })
    const before: number[] = []
    /** Those of jobs that came within a second after another: the worker knew that somebody waits. */
    const beforeKnown: number[] = []
    let lastAt = Number.NEGATIVE_INFINITY
    for (const request of asked) {
      const done = await count('')
      const sentAt = performance.now()
      const { receipt_id, status } = await shop.call('token-create', request)
      expect(status).toBe('SUCCEEDED')
      const own = 'where outbox_id < (select min(outbox_id) from tokenmill.outbox where receipt_id = $1)'
      const isKnown = performance.now() - lastAt < 1_000
      lastAt = sentAt
      const found = (await count(own, [receipt_id])) - done
      // On a busy machine the workers may do all others before this process has sent the next: then none stood in the way.
      if ((await waiting()) === 0) continue
      before.push(found)
      if (isKnown) beforeKnown.push(found)
    }
    isOver = true
    await working
    await workers.close()
    expect(answered).toBe(given)
    expect(before.length).toBeGreaterThan(0)
    // Half of them: this process may be late by a second.
    expect(before.toSorted((a, b) => a - b)[Math.floor(before.length / 2)]).toBeLessThan(BEFORE_MAX)
    // Once the worker knows that somebody waits, it has 16 others in hand, and takes as many while the job comes to it: on a busy
    // machine more, so those count that came most quickly.
    const [quick] = beforeKnown.toSorted((a, b) => a - b).slice(Math.floor(beforeKnown.length / 4))
    if (quick !== undefined) expect(quick).toBeLessThan(36)
  })
})
