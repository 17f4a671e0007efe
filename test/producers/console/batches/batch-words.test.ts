// What the page of a batch says in words: why it is stalled, as `batch show` says it, and what people did to it
// and noted, by whichever way.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { failedDiscard, failedList, moveToFailed } from '../../../../src/queue/failed.ts'
import { runCommand } from '../../../support/command.ts'
import { ENTITY } from '../../../support/installation.ts'
import { until } from '../../../support/until.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, type Person } from '../bundle.ts'

const HOSTILE = `"><img src=x onerror=alert(1)>`

let bundle: ConsoleBundle
let ada: Person
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada')
})
afterAll(() => bundle?.close())

const plain = (html: string) =>
  html
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

describe('a stalled batch', () => {
  const batchId = 'stalled-batch'
  let no: number
  beforeAll(async () => {
    no = await bundle.addBatch({
      batchId,
      rowsDone: 400,
      more: `extent_chunks = 2, chunks_done = 1, active_at = now() - interval '5 minutes'`,
    })
  })

  const whyTo = async ({ cookie }: Person = ada) => {
    const { text } = await bundle.call('GET', `/batches/${no}`, { cookie })
    return plain(/<strong id="stall"[^>]*>(.*?)<\/strong>/s.exec(text)?.[1] ?? 'nothing is said')
  }
  const commands = async () => {
    const { env } = bundle.installation
    return (JSON.parse((await runCommand(['batch', 'show', batchId, '--json'], { env })).stdout) as { why: string }).why
  }
  const addWorker = () =>
    bundle.rows(`insert into tokenmill.process (process_id, role, host, version, connections, kinds)
values (gen_random_uuid(), 'bulk', 'h', '0', 1, '{token-batch}')`)
  const says = (why: string) => `Why: ${why.replaceAll('`', '')}`
  // Whoever asks when a server answers late is told less, so one looks again.
  const untilSays = (text: RegExp, person?: Person) =>
    until(async () => text.test(await whyTo(person)), { what: `${text}` })
  /** The command names this cause, and the page says it in the same words. */
  const untilSame = (cause: string) =>
    until(
      async () => {
        const why = await commands()
        return why.split(':')[0] === cause && (await whyTo()) === says(why) && why
      },
      { what: cause },
    )

  it('says why, in the words of the command', async () => {
    await untilSame('nobody works')
    await addWorker()
    await untilSame('nobody sends')
    const { queues, credentials } = bundle.installation
    const { clientId } = credentials.signingKey
    const job = { id: 'failed-chunk', enqueuedAt: Date.now() }
    const copy = { jws: '', kind: 'token-batch', code: 'store_busy', attempt: 8, failedAt: Date.now(), jobId: job.id }
    await moveToFailed(queues, 'token-batch', job, { ...copy, clientId, jti: `${batchId}-1` })
    await untilSame('the failed set has 1 copy that names it (store_busy) and can not be retried')
    await bundle.rows(`insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision, state)
select current_date, '${clientId}', gen_random_uuid(), gen_random_uuid(), 1, 'NEW' from generate_series(1, 7)`)
    expect(await untilSame('results unread')).toContain('7 answers')
  })

  it('tells people for some entities what is theirs to know, and the command for the rest', async () => {
    const shared = await bundle.addPerson('some', { entities: [OURS] })
    await untilSays(/^Why: workers listen to its queue; whether .* tokenmill batch show says$/, shared)
    const whole = await bundle.addPerson('whole', { entities: [OURS, ENTITY] })
    await untilSays(/results unread: 7 answers/, whole)
    await bundle.rows(`delete from tokenmill.outbox where state = 'NEW'`)
    await untilSays(/the failed set has 1 copy/, whole)
    const { queues } = bundle.installation
    for (const { id } of await failedList(queues, 'token-batch')) await failedDiscard(queues, 'token-batch', id)
    await untilSays(/its results are read; whether its chunks wait/, whole)
  })

  it('says that its client is revoked', async () => {
    await bundle.rows(`update tokenmill.client set revoked_at = now() where client_id = $1`, [
      bundle.installation.credentials.signingKey.clientId,
    ])
    await until(async () => (await whyTo()) === says(await commands()), { what: 'the words of the command' })
    await untilSays(/its client is revoked/)
  })
})

describe('acts and notes', () => {
  const batchId = 'noted-batch'
  let no: number
  beforeAll(async () => {
    no = await bundle.addBatch({ batchId })
  })
  const notes = async ({ cookie }: Person = ada) => {
    const { text } = await bundle.call('GET', `/batches/${no}`, { cookie })
    return [...text.matchAll(/<li><span class="by">.*?<\/li>/g)].map(([note]) =>
      plain(note).replace(/^[\d-]+ [\d:]+ /, ''),
    )
  }
  const run = (...words: string[]) => runCommand(['batch', ...words], { env: bundle.installation.env })

  it('are listed with who, what and why, the newest first, from the command and from people', async () => {
    expect(await notes()).toEqual([])
    expect((await run('pause', batchId, '--reason', 'the bank asked')).code).toBe(0)
    expect((await run('note', batchId, '--reason', HOSTILE)).code).toBe(0)
    const { clientId } = bundle.installation.credentials.signingKey
    const { personId } = await bundle.addPerson('bea')
    await bundle.rows(
      `insert into tokenmill.audit (actor, action, subject, detail, host, entity_id) values ($1, 'batch.resume', $2, $3, 'h', '${OURS}')`,
      [
        `person:${personId}`,
        batchId,
        JSON.stringify({ client_id: clientId, reason: 'the bank is ready', entity_id: OURS }),
      ],
    )
    const said = await notes()
    expect(said).toEqual([
      'bea resumed it the bank is ready',
      expect.stringMatching(/^\S+ \(account\) noted &#34;&#62;&#60;img src=x/),
      expect.stringMatching(/^\S+ \(account\) paused it the bank asked$/),
    ])
    expect(said.join()).not.toContain('<img')
  })

  it('name to people for some entities nobody but people of these', async () => {
    const limited = await bundle.addPerson('olga', { entities: [OURS] })
    const { clientId } = bundle.installation.credentials.signingKey
    await bundle.rows(
      `insert into tokenmill.audit (actor, action, subject, detail, host, entity_id) values ($1, 'batch.note', $2, $3, 'h', '${OURS}')`,
      [`person:${limited.personId}`, batchId, JSON.stringify({ client_id: clientId, reason: 'mine', entity_id: OURS })],
    )
    const said = await notes(limited)
    expect(said).toEqual([
      'olga (you) noted mine',
      'a person outside your entities resumed it the bank is ready',
      expect.stringMatching(/^an operator at the command line noted /),
      'an operator at the command line paused it the bank asked',
    ])
    expect((await notes(ada))[0]).toBe('olga noted mine')
  })

  it('are not those of another client’s batch of the same id, and no refused ones', async () => {
    await bundle.rows(
      `insert into tokenmill.audit (actor, action, subject, detail, host, outcome) values
('machine:x', 'batch.note', $1, '{"client_id": "another", "reason": "foreign"}', 'h', 'done'),
('machine:x', 'batch.pause', $1, $2, 'h', 'refused')`,
      [batchId, JSON.stringify({ client_id: bundle.installation.credentials.signingKey.clientId, reason: 'refused' })],
    )
    expect(await notes()).toHaveLength(4)
  })

  it('stay on the page, whoever takes lists of its rows and whatever is done to other batches of its id', async () => {
    const { clientId } = bundle.installation.credentials.signingKey
    const before = await notes()
    const write = (action: string, client: string, times: number) =>
      bundle.rows(
        `insert into tokenmill.audit (actor, action, subject, detail, host, outcome)
select 'machine:x', $1, $2, $3, 'h', 'done' from generate_series(1, $4::int)`,
        [action, batchId, JSON.stringify({ client_id: client, reason: 'r' }), times],
      )
    await write('list.exported', clientId, 30)
    await write('batch.note', 'another', 600)
    expect(await notes()).toEqual(before)
    await write('batch.note', clientId, 20)
    expect(await notes()).toHaveLength(20)
    expect((await bundle.call('GET', `/batches/${no}`, { cookie: ada.cookie })).text).toContain(
      'These are the newest 20.',
    )
  })

  it('that can not be read leave the rest of the page', async () => {
    await bundle.rows('alter table tokenmill.audit rename to audit_away')
    const answer = await bundle.call('GET', `/batches/${no}`, { cookie: ada.cookie })
    await bundle.rows('alter table tokenmill.audit_away rename to audit')
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('could not be read now')
    expect(answer.text).not.toContain('Nobody has done anything')
  })

  it('need their text, and hold no card number', async () => {
    expect((await run('note', batchId)).code).toBe(64)
    expect((await run('note', batchId, '--reason', 'card 4111 1111 1111 1111')).code).toBe(64)
    const begin = (reason: string) =>
      bundle.call('POST', `/batches/${no}/note/begin`, { cookie: ada.cookie, json: { seen: 'PAUSED', reason } })
    expect((await begin('  ')).text).toContain('There is no text yet')
    expect((await begin('card 4111 1111 1111 1111')).text).toContain('card number')
    expect((await begin('call the bank first')).status).toBe(200)
  })
})
