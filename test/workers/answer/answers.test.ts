// What a result names: the digest of the very request that its envelope holds, computed here without the product's code.
import { createHash, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../../bin/sample/pan.ts'
import type { Client } from '../../../producers/client.ts'
import { signAsk } from '../../../producers/envelope.ts'
import { migrate } from '../../../producers/migrate/run.ts'
import { openInbox } from '../../../producers/results.ts'
import { isRefusal } from '../../../src/errors.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import { type Claims, readCompact, sign } from '../../../src/job/envelope/envelope.ts'
import { jobId, receiptId } from '../../../src/job/envelope/ids.ts'
import { transactionOf } from '../../producers/ingest/sample.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { openSystemDesk, type SystemDesk } from '../../support/system-requests.ts'
import { until } from '../../support/until.ts'

const REPLY_TO = 'named'

/** RFC 8785 for values whose numbers are whole and whose names are ASCII. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]))
}
const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url')
const digestOf = (kind: string, request: unknown) => sha256(JSON.stringify(inOrder({ kind, request })))

describeOnRedis('a result', engine => {
  let installation: Installation
  let client: Client
  let gateway: SystemDesk
  let inbox: ReturnType<typeof openInbox>
  const found: Result[] = []
  let made = 0
  const next = () => {
    made += 1
    return made
  }

  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers()
    client = await installation.connect({ replyTo: 'encrypting' })
    gateway = await openSystemDesk(installation, 'gateway')
    const { queues, credentials } = installation
    inbox = openInbox(
      queues,
      { clientId: clientId(), replyTo: REPLY_TO, keys: credentials.installationKeys },
      async delivery => {
        if (delivery.type === 'result') found.push(delivery)
        return 'taken'
      },
      { concurrency: 1, log: installation.session.log },
    )
    await inbox.ready
  })
  afterAll(async () => {
    await inbox?.close(1_000)
    await gateway?.close()
    await installation?.close()
  })

  const clientId = () => installation.credentials.signingKey.clientId

  interface Asking {
    kind: string
    request: Record<string, unknown>
    block?: string
    jti?: string
    roles?: Claims['roles']
    resultSets?: boolean
  }
  /** Sends the job, however wrong it is, and returns its answer. */
  async function ask({ kind, request, block, jti = randomUUID(), roles, resultSets }: Asking): Promise<Result> {
    const { queues, credentials } = installation
    const { userId, entityId, audience = 'tokenmill', signingKey } = credentials
    const claims = {
      iss: clientId(),
      aud: audience,
      sub: userId,
      entity_id: entityId,
      roles: roles ?? ['TOKEN_WRITE', 'TOKEN_LIFECYCLE', 'LEDGER_WRITE'],
      iat: Math.floor(Date.now() / 1000),
      jti,
      kind,
      request,
      reply_to: REPLY_TO,
      ...(resultSets ? { optional: { result_sets: true } } : {}),
    } as Claims
    const jws = sign(claims, signingKey)
    const queue = ['token-batch', 'transaction-batch'].includes(kind) ? kind : 'token-lifecycle'
    const data = block === undefined ? { jws } : { jws, block }
    await queues.add(queue, { id: jobId(clientId(), jti), data })
    return answerTo(jti, sha256(jws))
  }
  const answerTo = (jti: string, envelope: string) => {
    const id = receiptId(clientId(), jti)
    const isOwn = (result: Result) => result.receipt_id === id && result.envelope === envelope
    return until(() => found.find(isOwn), { what: `the answer to ${jti}` })
  }
  async function createRequest(number = panOf(next(), 93)): Promise<Record<string, unknown>> {
    const card = { cardNumber: number, expiryMonth: 12, expiryYear: 2031 }
    return { token_scope: installation.scope, ...(await client.encryptCard(card)) }
  }
  const rows = async <Row extends object>(text: string, values: unknown[]) =>
    (await installation.vault.store.query<Row>({ text, values })).rows

  it('names what its envelope asks for, of a job that was done, refused with a receipt, and refused without one', async () => {
    const done = { kind: 'token-create', request: await createRequest() }
    const missing = { kind: 'token-lifecycle', request: { id: 't00000000000000000000000000', action: 'SUSPEND' } }
    for (const [asked, code] of [
      [done, 200],
      [missing, 404],
      [{ ...missing, roles: [] }, 403],
    ] as const) {
      const result = await ask({ ...asked, roles: 'roles' in asked ? [...asked.roles] : undefined } as Asking)
      expect(result).toMatchObject({ code, kind: asked.kind, answers: digestOf(asked.kind, asked.request) })
    }
  })

  it('of an answer from the receipt names the request that came now, and so does one that is published later', async () => {
    const number = panOf(991, 93)
    const [first, again] = [await createRequest(number), await createRequest(number)]
    const jti = randomUUID()
    const one = await ask({ kind: 'token-create', request: first, jti })
    const two = await ask({ kind: 'token-create', request: again, jti })
    expect([one.answers, two.answers]).toEqual([digestOf('token-create', first), digestOf('token-create', again)])
    expect(two.record).toEqual(one.record)
    const unsent = () => rows(`select from tokenmill.outbox where receipt_id = $1 and state = 'NEW'`, [one.receipt_id])
    await until(async () => (await unsent()).length === 0, { what: 'both rows marked as sent' })
    const before = found.length
    await rows(`update tokenmill.outbox set state = 'NEW' where receipt_id = $1`, [one.receipt_id])
    await until(() => found.length >= before + 2, { what: 'both results once more' })
    const later = found.slice(before).filter(({ receipt_id }) => receipt_id === one.receipt_id)
    expect(later.map(({ envelope, answers }) => [envelope, answers]).sort()).toEqual(
      [one, two].map(({ envelope, answers }) => [envelope, answers]).sort(),
    )
  })

  it('has its own in a set', async () => {
    const requests = await Promise.all([createRequest(), createRequest(), createRequest()])
    const results = await Promise.all(requests.map(request => ask({ kind: 'token-create', request, resultSets: true })))
    expect(results.map(({ answers }) => answers)).toEqual(requests.map(request => digestOf('token-create', request)))
  })

  it('of a chunk names the digest of its records, and of a ledger’s chunk that of its lines', async () => {
    const batch = await tokenBatchOf()
    const chunk = await ask(batch)
    expect(chunk).toMatchObject({ code: 200, answers: digestOf('token-batch', batch.request) })
    const transactions = [0, 1].map(index => ({
      line: index + 2,
      transaction: transactionOf(index, { entity: ENTITY, seed: randomUUID() }),
    }))
    const request = { batch_id: 'lines', chunk: 0, transactions, last: true as const }
    const ledger = await ask({ kind: 'transaction-batch', request, jti: 'lines-0' })
    const inShort = { ...request, transactions: sha256(JSON.stringify(transactions)) }
    expect(ledger).toMatchObject({ code: 200, answers: digestOf('transaction-batch', inShort) })
  })

  async function tokenBatchOf(): Promise<Asking> {
    const { credentials, queues } = installation
    const file = `${installation.dataDir}/chunk.csv`
    await writeFile(file, `card_number,expiry_month,expiry_year\n${panOf(next(), 93)},12,2031\n`)
    let sent: { jws: string; block: string } | undefined
    const keeping = {
      ...queues,
      async add(queue: string, job: Parameters<typeof queues.add>[1]) {
        sent = job.data as { jws: string; block: string }
        return queues.add(queue, job)
      },
    }
    await migrate(
      {
        file,
        scope: installation.scope,
        ignoreUnknown: false,
        echo: [],
        dryRun: false,
        onConflict: 'update',
        onExpired: 'import',
        chunk: 50,
        inFlight: 1,
        recordKind: 'token-create',
        again: false,
      },
      {
        queues: keeping,
        credentials,
        clock: Date.now,
        log: installation.session.log,
        stream: { isTTY: false, write: () => true } as unknown as NodeJS.WriteStream,
        stop: new AbortController().signal,
      },
    )
    const { payload } = readCompact(sent?.jws ?? '') ?? {}
    const { request, jti } = payload as Claims
    return { kind: 'token-batch', request, jti, block: sent?.block ?? '' }
  }

  it('that says no more what was asked names the envelope alone: a request that was not understood may hold a card', async () => {
    const lifecycle = { kind: 'token-lifecycle', request: { id: 't00000000000000000000000000', action: 'WHATEVER' } }
    const number = { kind: 'token-create', request: { number: '4111111111111111' } }
    const later = { kind: 'token-transfer', request: {} }
    const illFormed = { kind: 'token-lifecycle', request: { id: '\ud800', action: 'SUSPEND' } }
    for (const asked of [lifecycle, number, later, illFormed]) {
      const result = await ask(asked)
      expect(result).toMatchObject({ code: 400, kind: asked.kind })
      expect(result).not.toHaveProperty('answers')
    }
  })

  it('of a job that was undone names what the envelope asked for that took effect, as long as the store says it', async () => {
    for (const isKept of [true, false]) {
      const request = await createRequest()
      const sent = await gateway.send('token-create', request)
      const first = await gateway.answer(sent)
      expect(first.answers).toBe(digestOf('token-create', request))
      if (!isKept) await rows('update tokenmill.outbox set answers = null where receipt_id = $1', [sent.receiptId])
      expect(await gateway.reverse(sent)).toBe('COMPLETED')
      const undone = await gateway.answer(sent, 1)
      expect(undone).toMatchObject({ revision: 2, status: 'FAILED', envelope: sent.envelope })
      expect(undone.answers).toBe(isKept ? first.answers : undefined)
    }
  })

  it('is all that has the digest, with the row that tells it: no table that is kept longer does', async () => {
    const request = { id: 't00000000000000000000000000', action: 'SUSPEND' }
    const { receipt_id: id, answers = '' } = await ask({ kind: 'token-lifecycle', request })
    const hex = Buffer.from(answers, 'base64url').toString('hex')
    const tables = await rows<{ name: string }>(
      `select relname as name from pg_class
       where relnamespace = 'tokenmill'::regnamespace and relkind in ('r', 'p') and not relispartition`,
      [],
    )
    const holding: string[] = []
    for (const { name } of tables) {
      const [{ count } = { count: 0 }] = await rows<{ count: number }>(
        `select count(*) as count from tokenmill."${name}" as t where t::text like $1 or t::text like $2`,
        [`%${hex}%`, `%${answers}%`],
      )
      if (count > 0) holding.push(name)
    }
    expect([id.length, holding]).toEqual([36, ['outbox']])
  })

  it('of a sender that signs by the library names the digest that the library knows', async () => {
    const options = { jti: randomUUID(), replyTo: REPLY_TO }
    const request = await createRequest()
    const signed = await signAsk(installation.credentials, { kind: 'token-create', request }, options, Date.now())
    if (isRefusal(signed)) throw new Error(signed.reason)
    expect(signed.answers).toBe(digestOf('token-create', request))
  })
})
