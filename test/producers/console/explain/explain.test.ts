// The search, and what it leads to: a job as a timeline. What was typed stands in no address and no answer; what is somebody
// else's answers as what isn't there.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Client } from '../../../../producers/client.ts'
import { jobContent } from '../../../../producers/console/explain/job-content.ts'
import { explain } from '../../../../producers/operate/explain.ts'
import { wholeReader } from '../../../../producers/operate/whole-reader.ts'
import { CATALOGUE } from '../../../../src/job/composition.ts'
import { receiptId } from '../../../../src/job/envelope/ids.ts'
import { moveToFailed } from '../../../../src/queue/failed.ts'
import { parseReuseToken } from '../../../../src/token/token.ts'
import { ENTITY } from '../../../support/installation.ts'
import { until } from '../../../support/until.ts'
import { type Answer, type ConsoleBundle, openConsoleBundle, type Person, THEIRS } from '../bundle.ts'

const CARD = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030, cardholderName: 'ANNA MEYER' }
/** A reference that a sender may choose: 16 digits that pass Luhn, of no network. */
const NUMBER = '9000000000000001'
const SCRIPT = '<script>alert(1)</script>"onload=x'

let bundle: ConsoleBundle
let client: Client
let all: Person
let viewer: Person
let ours: Person
let theirs: Person
beforeAll(async () => {
  bundle = await openConsoleBundle()
  all = await bundle.addPerson('all')
  viewer = await bundle.addPerson('viewer', { roles: ['VIEWER'] })
  ours = await bundle.addPerson('ours', { entities: [ENTITY] })
  theirs = await bundle.addPerson('theirs', { entities: [THEIRS] })
  client = await bundle.installation.connect()
})
afterAll(async () => {
  await client?.close()
  await bundle?.close()
})

const search = (what: string, { cookie }: Person = all) => bundle.call('POST', '/search', { cookie, form: { what } })
const open = (path: string, { cookie }: Person = all) => bundle.call('GET', path, { cookie })
const found = async (what: string, person: Person = all) => {
  const { status, headers } = await search(what, person)
  return status === 303 ? String(headers['location']) : status
}
/** What a person sees of an answer: not its request's id. */
const seen = ({ status, headers, text }: Answer) => {
  const { 'x-request-id': _, date: __, ...told } = headers
  return JSON.stringify({ status, told, text })
}
const create = async (more: Parameters<Client['call']>[2]) =>
  client.call(
    'token-create',
    { token_scope: bundle.installation.scope, ...(await client.encryptCard(CARD)) },
    more ?? {},
  )

describe('a job that nobody has worked yet', () => {
  const suspend = { id: 't00000000000000000000000000', action: 'SUSPEND' } as const

  it('is found by its jti, by people who see the whole client', async () => {
    await client.submit('token-lifecycle', suspend, { jti: 'waits-1' })
    const to = await found('waits-1')
    expect(to).toMatch(new RegExp(`^/explain/jobs/${receiptId(client.clientId, 'waits-1')}\\?job=j_`))
    for (const person of [all, ours]) {
      expect(await found('waits-1', person)).toBe(to)
      const { status, text } = await open(String(to), person)
      expect(status).toBe(200)
      expect(text).toContain('WAITING')
      expect(text).toContain('It waits for a worker in token-lifecycle. No worker listens to this queue.')
      expect(text).toContain('start one with <code class="command">tokenmill workers</code>')
    }
    expect(await found('waits-1', theirs)).toBe(404)
    const missing = String(to).replace(/[0-9a-f]{8}-/, '00000000-')
    expect(seen(await open(String(to), theirs))).toBe(seen(await open(missing, theirs)))
    // The receipt and the job of an address belong together.
    expect((await open(missing)).status).toBe(404)
  })

  it('that failed for good is found by its copy and by its jti, with what to do', async () => {
    const { queues } = bundle.installation
    await client.submit('token-lifecycle', suspend, { jti: 'fails-1', reference: 'customer 18' })
    const waiting = await queues.list('token-lifecycle', ['waiting'], 0, 10)
    const { id = '', data } = waiting.at(-1) ?? {}
    const { jws } = data as { jws: string }
    await queues.remove('token-lifecycle', id)
    const { clientId } = client
    const failure = { code: 'contention', attempt: 8, failedAt: Date.now() }
    const copy = { ...failure, jws, kind: 'token-lifecycle', jobId: id, clientId, jti: 'fails-1' }
    const forged = { ...copy, jti: 'another' }
    const forgedId = await moveToFailed(queues, 'token-lifecycle', { id, enqueuedAt: 2 }, forged)
    const failedId = await moveToFailed(queues, 'token-lifecycle', { id, enqueuedAt: 1 }, copy)
    const to = await found(failedId)
    expect(to).toMatch(/^\/explain\/jobs\/[0-9a-f-]{36}\?job=j_/)
    const { text } = await open(String(to), ours)
    expect(text).toContain('FAILED')
    expect(text).toContain('8 attempts ended with a fault, at last contention')
    expect(text).toContain(`tokenmill failed retry ${failedId}`)
    expect([await found(failedId, theirs), await found(forgedId)]).toEqual([404, 404])
  })
})

describe('a job that was decided', () => {
  let made: string
  let token: string
  beforeAll(async () => {
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    const result = await create({ jti: 'order-17-a', reference: 'customer 17' })
    made = receiptId(client.clientId, 'order-17-a')
    token = String(result.record?.['reuse_token'])
  })

  it('is found by each of its names, by an address of our own ids', async () => {
    const address = `/explain/jobs/${made}`
    for (const what of ['order-17-a', ' order-17-a ', made, made.toUpperCase(), 'customer 17'])
      expect(await found(what), what).toBe(address)
    const tokenId = parseReuseToken(token)
    for (const what of [token, String(tokenId)]) expect(await found(what)).toBe(`/explain/tokens/${tokenId}`)
    const page = await open(`/explain/tokens/${tokenId}`, ours)
    expect(page.text).toContain(address)
    expect(page.text).toContain('ACTIVE')
    expect((await open(`/explain/tokens/${tokenId}`, theirs)).status).toBe(404)
  })

  it('is shown as the command explains it', async () => {
    // While the queues don't answer in time the page says so, and no more.
    const text = await until(async () => {
      const { text: shown } = await open(`/explain/jobs/${made}`)
      return shown.includes('Answer delivered') && shown.includes('Nothing has to be done.') && shown
    })
    const { store } = bundle.installation.vault
    const sources = { store, queues: bundle.installation.queues, catalogue: CATALOGUE, now: Date.now() }
    const { jobs } = await explain({ what: made }, { ...sources, reader: wholeReader(sources) })
    const [job] = jobs
    expect(job?.timeline.map(({ what }) => what)).toEqual(['sent', 'decided', 'answered'])
    for (const step of job?.timeline ?? []) {
      expect(text).toContain(step.title)
      expect(text).toContain(step.text.slice(0, 30).split(/['"&]/)[0])
      expect(text).toContain(`datetime="${step.at}"`)
    }
    // A command stands in an element of its own.
    for (const step of job?.next ?? []) for (const part of step.split('`')) expect(text).toContain(part.slice(0, 40))
    expect(text).toContain('order-17-a')
    expect(text).toContain('Nothing has to be done.')
    expect(text).not.toMatch(/411111|ANNA/)
    expect(text).toContain(`href="/explain/tokens/${parseReuseToken(token)}"`)
  })

  it('shows its reference to people who may act, and to others that there is one', async () => {
    expect((await open(`/explain/jobs/${made}`)).text).toContain('customer 17')
    const { text } = await open(`/explain/jobs/${made}`, viewer)
    expect(text).not.toContain('customer 17')
    expect(text).toContain('shown to operators and administrators')
    expect(await found('customer 17', viewer)).toBe(`/explain/jobs/${made}`)
  })

  it('lists the others of its reference, and leads to the newest', async () => {
    await create({ jti: 'order-17-b', reference: 'customer 17' })
    const newer = receiptId(client.clientId, 'order-17-b')
    expect(await found('customer 17')).toBe(`/explain/jobs/${newer}`)
    expect((await open(`/explain/jobs/${newer}`)).text).toContain(`/explain/jobs/${made}`)
    expect((await open(`/explain/jobs/${made}`)).text).toContain(`/explain/jobs/${newer}`)
  })

  it('with a number for a reference is found by it, and no page repeats the number', async () => {
    await create({ jti: 'numbered', reference: NUMBER })
    const id = receiptId(client.clientId, 'numbered')
    expect(await found(NUMBER)).toBe(`/explain/jobs/${id}`)
    const { text } = await open(`/explain/jobs/${id}`)
    expect(text).not.toContain(NUMBER)
    expect(text).toContain('****************')
    // As a jti such a number is not looked for.
    await bundle.rows('update tokenmill.receipt set jti = $1, reference = null where receipt_id = $2', [NUMBER, id])
    expect(await found(NUMBER)).toBe(404)
  })

  it('that was refused says why, and what the sender can do', async () => {
    await create({ jti: 'refused-1', reference: SCRIPT }).catch(() => undefined)
    const ended = await client
      .call('token-lifecycle', { id: 't00000000000000000000000000', action: 'SUSPEND' }, { jti: 'refused-2' })
      .catch(error => error)
    expect(ended).toBeDefined()
    const { text } = await open(String(await found('refused-2')))
    expect(text).toContain('REFUSED')
    expect(text).toContain('The sender corrects')
    const hostile = await open(String(await found(SCRIPT)))
    expect(hostile.status).toBe(200)
    expect(hostile.text).not.toContain('<script>alert')
  })

  it('was cancelled before it was decided, or waits for its compensation', async () => {
    const [id, calledAt] = [randomUUID(), '2026-11-20T10:00:00Z']
    await addReceipt({ receipt_id: id, status: 'CANCELLED', code: 500, outcome: null, reversal: 'REQUIRED' })
    await bundle.rows(
      `insert into tokenmill.scheme_intent (intent_id, receipt_id, token_id, provision_id, action, state, reversal, created_at, updated_at)
values (gen_random_uuid(), $1, gen_random_uuid(), gen_random_uuid(), 'PROVISION', 'DONE', 'REQUIRED', $2, $2)`,
      [id, calledAt],
    )
    const { text } = await open(`/explain/jobs/${id}`)
    for (const part of ['CANCELLED', 'Provider asked for a token', 'must be undone', 'Provider calls to be undone'])
      expect(text).toContain(part)
  })
})

async function addReceipt(over: Record<string, unknown>): Promise<void> {
  const row: Record<string, unknown> = {
    receipt_id: randomUUID(),
    day: new Date().toISOString().slice(0, 10),
    client_id: client.clientId,
    entity_id: ENTITY,
    iss: client.clientId,
    kind: 'token-create',
    jti: randomUUID(),
    request_digest: '\\x00',
    envelope_digest: '\\x00',
    status: 'SUCCEEDED',
    code: 200,
    outcome: 'CREATED',
    revision: 1,
    attempt: 1,
    accepted_at: new Date(),
    completed_at: new Date(),
    ...over,
  }
  const names = Object.keys(row)
  await bundle.rows(
    `with key as (insert into tokenmill.receipt_key (receipt_id, day, revision) values ($1, $2, 1))
insert into tokenmill.receipt (${names.join(', ')}) values (${names.map((_, n) => `$${n + 1}`).join(', ')})`,
    Object.values(row),
  )
}

describe('what is somebody else’s', () => {
  it('or of no entity, or of a batch that isn’t seen, answers as what is not there', async () => {
    const idOf = (jti: string) => receiptId(client.clientId, jti)
    const earlier = { receipt_id: idOf('earlier'), entity_id: null, jti: 'earlier', reference: 'earlier ref' }
    const foreign = { receipt_id: idOf('foreign'), entity_id: THEIRS, jti: 'foreign', reference: 'foreign ref' }
    const batchNo = await bundle.addBatch({ batchId: 'their-batch', entityId: THEIRS })
    const chunk = {
      receipt_id: idOf('their-batch-0'),
      jti: 'their-batch-0',
      batch_no: batchNo,
      chunk: 0,
      kind: 'token-batch',
    }
    for (const row of [earlier, foreign, chunk]) await addReceipt(row)
    const missing = seen(await search('nothing-of-the-kind', ours))
    const noPage = seen(await open(`/explain/jobs/${randomUUID()}`, ours))
    const names = ['earlier', 'earlier ref', 'foreign', 'foreign ref', 'their-batch', 'their-batch-0']
    for (const what of [...names, ...[earlier, foreign, chunk].map(row => row.receipt_id)]) {
      expect(seen(await search(what, ours)), what).toBe(missing)
      expect(await found(what), what).not.toBe(404)
    }
    for (const row of [earlier, foreign, chunk])
      expect(seen(await open(`/explain/jobs/${row.receipt_id}`, ours))).toBe(noPage)
    expect((await open(`/explain/batches/${batchNo}`, ours)).status).toBe(404)
    expect(await found('their-batch', theirs)).toBe(`/batches/${batchNo}`)
    const page = await open(`/explain/jobs/${chunk.receipt_id}`, theirs)
    expect(page.text).toContain(`href="/batches/${batchNo}"`)
  })

  it('hides no batch of the person’s own with the same id', async () => {
    const own = await bundle.addBatch({ batchId: 'shared-id', entityId: ENTITY })
    await bundle.rows(
      `insert into tokenmill.batch (client_id, batch_id, entity_id, record_kind, chunk_records, layout, accepted_at)
values ('gateway', 'shared-id', $1, 'token-create', 1000, '{}', now())`,
      [THEIRS],
    )
    expect(await found('shared-id', ours)).toBe(`/batches/${own}`)
    const to = String(await found('shared-id'))
    expect(to).toMatch(/^\/explain\/batches\/\d+$/)
    expect((await open(to)).text.match(/href="\/batches\/\d+"/g)).toHaveLength(2)
  })
})

describe('an operation over HTTP', () => {
  it('is found by its id before it has an answer', async () => {
    const id = randomUUID()
    await bundle.rows(
      `insert into tokenmill.operation (receipt_id, client_id, entity_id, kind, job_id, request_digest, refusal_id, jws, accepted_at,
  expires_at, due_at) values ($1, $2, $3, 'token-create', 'j_none', '\\x00', gen_random_uuid(), 'x', now(), now() + interval '1 hour', now())`,
      [id, client.clientId, THEIRS],
    )
    expect(String(await found(id, theirs))).toContain(`/explain/jobs/${id}`)
    const { text } = await open(`/explain/jobs/${id}`, theirs)
    expect(text).toContain('Accepted over HTTP')
    expect(text).toContain('WAITING')
    expect(await found(id, ours)).toBe(404)
  })
})

describe('an answer without a receipt', () => {
  it('says what was refused, and to people for some entities only if the client is theirs', async () => {
    const id = receiptId(client.clientId, 'told-1')
    const error = { code: 400, details: { 'body.x': { code: 'field_value', message: 'it is not one of the values' } } }
    const body = JSON.stringify({ jti: 'told-1', code: 400, error, reference: 'canary-reference', bin: '41111111' })
    await bundle.rows(
      `insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision, body, state)
values (current_date, $1, gen_random_uuid(), $2, 1, $3, 'NEW')`,
      [client.clientId, id, body],
    )
    for (const person of [all, ours]) {
      expect(String(await found('told-1', person))).toContain(id)
      const { text } = await open(`/explain/jobs/${id}`, person)
      expect(text).toContain('It says 400: field_value (body.x)')
      expect(text).not.toMatch(/canary-reference|41111111/)
    }
    expect(await found('told-1', theirs)).toBe(404)
  })
})

describe('the search', () => {
  it('repeats nothing that was typed, and is limited', async () => {
    const { cookie } = await bundle.addPerson('busy')
    for (const what of ['4111111111111111', '4111 1111 1111 1111', '<b>alert', 'x'.repeat(3_000), '\0', '']) {
      const answer = await bundle.call('POST', '/search', { cookie, form: { what } })
      expect(answer.status).toBe(404)
      expect(answer.text).not.toMatch(/4111|alert|xxxx/)
      expect(JSON.stringify(answer.headers)).not.toMatch(/4111|alert|xxxx/)
    }
    const rest = await Promise.all(
      Array.from({ length: 60 }, () => bundle.call('POST', '/search', { cookie, form: { what: 'n' } })),
    )
    expect(rest.filter(({ status }) => status === 429)).toHaveLength(6)
  })

  it('stands in the bar of every page, and is posted', async () => {
    const { text } = await open('/batches')
    expect(text).toContain('<form class="search" method="post" action="/search" role="search">')
    expect((await open('/search')).status).toBe(404)
    expect((await open('/explain')).text).toContain('tokenmill explain BATCH LINE')
  })
})

describe('a page of a job', () => {
  it('says what it can’t see while the queues don’t answer', () => {
    const facts = {
      receipt_id: randomUUID(),
      client: { id: 'c', name: 'shop' },
      calls: [],
      told: [],
      timeline: [],
      next: [],
    }
    const text = String(
      jobContent(
        { facts, others: [], batchNo: null, sawQueues: false, heardMs: null },
        { showsReference: true, now: 0 },
      ),
    )
    expect(text).toContain('The queues don’t answer.')
    expect(text).toContain('UNKNOWN')
    expect(text).not.toContain('may submit it again')
  })
})
