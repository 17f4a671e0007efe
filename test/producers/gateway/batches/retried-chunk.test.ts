// A chunk of a batch over HTTP that failed for good and that the operator sends again: the batch counts its records as they
// ended, as its results do.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../../../bin/sample/pan.ts'
import { failedList } from '../../../../src/queue/failed.ts'
import { runCommand } from '../../../support/command.ts'
import { describeStore } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { until } from '../../../support/until.ts'
import { type Caller, openGatewayFor } from '../bundle.ts'

const BATCHES = '/oidc/api/v2/batches'
/** One chunk of 1,000, and one of 10. */
const ROWS = 1_010

describeStore('a failed chunk of a batch over HTTP', engine => {
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    installation = await openInstallation(engine, { TOKENMILL_LOG_LEVEL: 'silent' })
    caller = await openGatewayFor(installation)
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })
  const run = (text: string) => installation.vault.store.query({ text })
  const shows = (counts: Record<string, number>) =>
    until(
      async () => {
        const { body } = await caller.call('GET', `${BATCHES}/retried`)
        const told = body['counts'] as typeof counts
        return body['finished'] === true && Object.entries(counts).every(([key, n]) => told[key] === n) && body
      },
      { what: JSON.stringify(counts) },
    )
  const outcomes = async () => {
    const { text } = await caller.call('GET', `${BATCHES}/retried/results`)
    const rows = text.trimEnd().split('\n').slice(1)
    const counted = Object.entries(Object.groupBy(rows, line => line.split(',')[2] ?? ''))
    return Object.fromEntries(counted.map(([outcome, found = []]) => [outcome, found.length]))
  }

  it('that the operator sends again is counted as it ends then', async () => {
    await run(`create function tokenmill.fail() returns trigger language plpgsql as
$$ begin raise exception 'made to fail'; end $$`)
    await run(`create trigger fail before insert on tokenmill.receipt for each row
when (new.jti like 'retried-%' and new.chunk = 1) execute function tokenmill.fail()`)
    const row = (_: unknown, index: number) => `r-${index},${panOf(index, 42)},12,2034\n`
    const posted = await caller.call('POST', `${BATCHES}?token_scope=${installation.scope}&batch_id=retried`, {
      headers: { 'content-type': 'text/csv' },
      body: `reference,card_number,expiry_month,expiry_year\n${Array.from({ length: ROWS }, row).join('')}`,
    })
    expect(posted.status).toBe(202)
    await shows({ CREATED: 1_000, FAILED: 10 })
    expect(await outcomes()).toEqual({ CREATED: 1_000, FAILED: 10 })

    const copies = () => failedList(installation.queues, 'token-batch')
    const [copy] = await until(async () => (await copies()).length === 1 && copies(), { what: 'the copy' })
    await run('drop trigger fail on tokenmill.receipt')
    const retried = await runCommand(['failed', 'retry', copy?.id ?? '', '--reason', 'mended'], installation)
    expect(retried, retried.stderr).toMatchObject({ code: 0 })
    expect(await shows({ CREATED: ROWS, FAILED: 0 })).toMatchObject({ records_done: ROWS, progress: 1 })
    expect(await outcomes()).toEqual({ CREATED: ROWS })
    expect((await caller.call('GET', BATCHES)).body).toMatchObject({
      batches: [{ batch_id: 'retried', counts: { CREATED: ROWS, FAILED: 0 } }],
    })
  })
})
