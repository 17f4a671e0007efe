// An act of a person on failed jobs is done to exactly the copies that the person saw, whatever fails meanwhile, and goes on where a
// worker died.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { doFailedActs } from '../../../src/acts/failed-acts.ts'
import { checkPersonProof } from '../../../src/acts/person-proof.ts'
import { checkProof } from '../../../src/audit/proof.ts'
import type { FailedActName } from '../../../src/job/system/failed-act.ts'
import { digestOf } from '../../../src/queue/failed/selection.ts'
import { failedDiscard, failedList, failedRetry, moveToFailed } from '../../../src/queue/failed.ts'
import { AUDIT_COLUMNS, type AuditRow } from '../../../src/store/access/audits.ts'
import * as failedActs from '../../../src/store/person/failed-acts.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { type ActBench, type Member, openActBench, SITE, type Unproved } from './bench.ts'
import { type Failing, failCopy, KIND } from './failed-copies.ts'

const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
type Action = FailedActName

describeStore('an act on failed jobs', engine => {
  let installation: Installation
  let other: Awaited<ReturnType<Installation['addClient']>>
  let bench: ActBench
  let admin: Member
  let operator: Member
  beforeAll(async () => {
    installation = await openInstallation(engine, {
      TOKENMILL_CONSOLE_ORIGIN: SITE.origin,
      TOKENMILL_LOG_LEVEL: 'silent',
    })
    other = await installation.addClient('other', { entity: OTHER })
    await installation.openWorkers({ roles: ['interactive'] })
    bench = await openActBench(installation)
    admin = await bench.join('Ada', ['ADMIN'])
    operator = await bench.join('Olaf', ['OPERATOR'])
  })
  afterAll(async () => {
    await bench?.close()
    await installation?.close()
  })
  beforeEach(async () => {
    for (const { id } of await left()) await failedDiscard(installation.queues, KIND, id)
    for (const { id } of await installation.queues.list(KIND, ['waiting'], 0, 9_999))
      await installation.queues.remove(KIND, id)
  })

  const rows = async <R = Record<string, unknown>>(text: string, ...values: unknown[]) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const left = () => failedList(installation.queues, KIND)
  const fail = (failing: Partial<Failing> = {}) =>
    failCopy(installation.queues, { credentials: installation.credentials, ...failing })
  const sent = async () => (await installation.queues.depth(KIND)).waiting
  /** What a worker does every second. */
  const ended = async () => {
    await doFailedActs({ store: installation.vault.store, queues: installation.queues }, Date.now)
    await until(async () => (await rows('select from tokenmill.failed_act where outcome is null')).length === 0)
  }
  const outcomes = async (nonce: string) =>
    (
      await rows<{ outcome: string }>(
        'select outcome from tokenmill.failed_act where nonce = $1 order by act_no',
        nonce,
      )
    ).map(({ outcome }) => outcome)

  const one = (act: Action, { id }: { id: string }) => ({
    act,
    subject: id,
    parameters: { kind: KIND },
    seen: digestOf([{ id }]),
  })
  const many = (
    act: Action,
    copies: readonly { id: string }[],
    { filter = {}, ...odd }: Record<string, unknown> = {},
  ) => ({
    act,
    subject: `failed-${KIND}`,
    seen: digestOf(copies),
    parameters: { kind: KIND, filter, count: copies.length, up_to: Date.now() - 30_000, ...odd },
  })
  const send = (member: Member, act: Pick<Unproved, 'act' | 'subject' | 'parameters' | 'seen'>) =>
    bench.send(bench.touch(member, bench.on(member, act)))

  it('sends one again with one touch, and its row holds person, passkey and proof', async () => {
    const copy = await fail()
    const answer = await bench.ask(bench.touch(operator, bench.on(operator, one('failed.retry', copy))))
    expect(answer).toMatchObject({ status: 'SUCCEEDED', record: { audit_id: expect.any(Number) } })
    await ended()
    expect([await left(), await sent()]).toEqual([[], 1])
    const found = await rows('select * from tokenmill.audit where subject = $1', copy.id)
    expect(found).toMatchObject([
      {
        audit_id: answer.record?.['audit_id'],
        actor: `person:${operator.personId}`,
        action: 'failed.retry',
        outcome: 'done',
        detail: {
          kind: KIND,
          job_id: copy.jobId,
          reason: 'a test',
          credential: operator.authenticator.credentialId,
          proof: expect.any(String),
          proof_sha256: expect.any(String),
        },
      },
    ])
  })

  it('does exactly the ticked ones, all or none', async () => {
    const copies = [await fail(), await fail(), await fail({ isEmptied: true }), await fail()]
    const ticked = (act: Action, ids: readonly { id: string }[]) => ({
      act,
      subject: `failed-${KIND}`,
      seen: digestOf(ids),
      parameters: { kind: KIND, ids: ids.map(({ id }) => id) },
    })
    const three = copies.slice(0, 3)
    const member = await bench.join('Tilda', ['OPERATOR'], [OTHER])
    expect(await send(member, ticked('failed.retry', three))).toBe('changed_meanwhile')
    expect(await send(operator, ticked('failed.discard', three))).toBe('act_forbidden')
    expect(await send(operator, { ...ticked('failed.retry', three), subject: 'failed-act' })).toBe('failed_not_found')
    expect(await send(operator, ticked('failed.retry', [...three, { id: `f_${'A'.repeat(43)}` }]))).toBe(
      'changed_meanwhile',
    )
    expect(await send(operator, ticked('failed.retry', [...three, ...three]))).toBe('field_value')
    const signed = bench.touch(operator, bench.on(operator, ticked('failed.retry', three)))
    const more = { ...signed, ...ticked('failed.retry', copies) }
    expect(await bench.send({ ...more, proof: signed.proof })).toBe('passkey_challenge')
    expect(await bench.send({ ...signed, proof: null })).toBe('passkey_missing')
    expect(await left()).toHaveLength(4)
    const request = bench.on(operator, ticked('failed.retry', three))
    expect(await bench.send(bench.touch(operator, request))).toBe('DONE')
    await ended()
    expect((await outcomes(request.nonce)).sort()).toEqual(['card_data_removed', 'done', 'done'])
    expect((await left()).map(({ id }) => id).sort()).toEqual(
      copies
        .slice(2)
        .map(({ id }) => id)
        .sort(),
    )
    const [whole] = await rows(
      `select detail->>'ticked' as ticked from tokenmill.audit where action = 'failed.retry' and subject = $1 and outcome = 'done'
order by audit_id desc limit 1`,
      `failed-${KIND}`,
    )
    expect(whole).toEqual({ ticked: '3' })
    // One of them is gone since.
    expect(await send(operator, ticked('failed.retry', [copies[0], copies[3]] as { id: string }[]))).toBe(
      'changed_meanwhile',
    )
  })

  it('does exactly the number confirmed while new ones arrive', async () => {
    const matching = await Promise.all(Array.from({ length: 41 }, () => fail()))
    const others = [await fail({ code: 'defect' }), await fail({ credentials: other.credentials })]
    let isOver = false
    let arrived = 0
    const arriving = (async () => {
      while (!isOver) {
        await fail({ failedAt: Date.now() })
        arrived += 1
      }
    })()
    const { clientId } = installation.credentials.signingKey
    const act = many('failed.retry', matching, { filter: { code: 'files_away', client_id: clientId } })
    const request = bench.touch(operator, bench.on(operator, act))
    try {
      expect(await bench.send(request)).toBe('DONE')
      await ended()
    } finally {
      isOver = true
    }
    await arriving
    expect(arrived).toBeGreaterThan(0)
    expect(await sent()).toBe(41)
    expect(await left()).toHaveLength(2 + arrived)
    expect((await left()).filter(({ id }) => others.some(one => one.id === id))).toHaveLength(2)
    expect(await outcomes(request.nonce)).toEqual(Array.from({ length: 41 }, () => 'done'))
    const audit = await rows<{ subject: string; proof: string }>(
      `select subject, detail->>'proof' as proof from tokenmill.audit
where action = 'failed.retry' and outcome = 'done' and detail->>'proof' like '%' || $1 || '%'`,
      request.nonce,
    )
    expect(audit.map(({ subject }) => subject).sort()).toEqual(
      [...matching.map(({ id }) => id), `failed-${KIND}`].sort(),
    )
    expect(new Set(audit.map(({ proof }) => proof)).size).toBe(1)
  })

  it('is refused before anything is done where the copies are not those that were shown', async () => {
    const copies = await Promise.all([fail(), fail(), fail()])
    const [first, , third] = copies
    const act = many('failed.retry', copies)
    const wrong: [string, Parameters<typeof send>[1]][] = [
      ['fewer are shown', many('failed.retry', copies.slice(1))],
      ['more are shown', many('failed.retry', [...copies, { id: 'f_none' }])],
      ['others are shown', { ...act, seen: digestOf([...copies.slice(1), { id: 'f_none' }]) }],
      ['another count is shown', { ...act, parameters: { ...act.parameters, count: 4 } }],
      ['another is shown', { ...one('failed.retry', copies[0]), seen: digestOf([copies[1]]) }],
    ]
    for (const [what, request] of wrong) expect(await send(admin, request), what).toBe('changed_meanwhile')
    // Somebody else was faster.
    await failedRetry(installation.queues, KIND, first?.id ?? '')
    expect(await send(admin, act)).toBe('changed_meanwhile')
    // One that was stamped late: as many as before, and not the same.
    await fail()
    expect(await send(admin, act)).toBe('changed_meanwhile')
    expect(await send(admin, one('failed.retry', { id: 'f_none' }))).toBe('failed_not_found')
    expect(await send(admin, { ...act, subject: 'failed-webhook' })).toBe('failed_not_found')
    expect(await send(admin, { ...act, parameters: { ...act.parameters, kind: 'nothing' } })).toBe('failed_not_found')
    expect([await sent(), (await left()).length]).toEqual([1, 3])
    expect(await rows('select from tokenmill.failed_act where copy_id = $1', third?.id)).toEqual([])
  })

  it('says of each copy why it can not be sent again, and leaves it', async () => {
    const copies = [await fail(), await fail({ isEmptied: true })]
    const act = many('failed.retry', copies)
    const request = bench.touch(operator, bench.on(operator, act))
    expect(await bench.send(request)).toBe('DONE')
    await ended()
    expect((await outcomes(request.nonce)).sort()).toEqual(['card_data_removed', 'done'])
    expect((await left()).map(({ id }) => id)).toEqual([copies[1]?.id])
    // Nothing would happen.
    expect(await send(operator, one('failed.retry', copies[1] ?? { id: '' }))).toBe('act_state')
    expect(await send(admin, one('failed.discard', copies[1] ?? { id: '' }))).toBe('DONE')
    await ended()
    expect(await left()).toEqual([])
  })

  it('permits each role its own acts', async () => {
    const viewer = await bench.join('Vera', ['VIEWER'])
    const tries: [Member, Action, string][] = [
      [viewer, 'failed.retry', 'act_forbidden'],
      [viewer, 'failed.discard', 'act_forbidden'],
      [operator, 'failed.retry', 'DONE'],
      [operator, 'failed.discard', 'act_forbidden'],
      [admin, 'failed.retry', 'DONE'],
      [admin, 'failed.discard', 'DONE'],
    ]
    for (const [member, act, said] of tries) {
      const copies = [await fail(), await fail()]
      expect(await send(member, one(act, copies[0] ?? { id: '' })), `one: ${act}`).toBe(said)
      await ended()
      const now = await left()
      expect(await send(member, many(act, now)), `many: ${act}`).toBe(said)
      await ended()
      expect(await left()).toHaveLength(said === 'DONE' ? 0 : 2)
      for (const { id } of await left()) await failedDiscard(installation.queues, KIND, id)
    }
  })

  it('meets copies of clients that act for the person’s entities only', async () => {
    const member = await bench.join('Enno', ['OPERATOR', 'ADMIN'], [ENTITY])
    const ours = await fail()
    const theirs = await fail({ credentials: other.credentials })
    const { clientId } = installation.credentials.signingKey
    const foreign = [
      theirs,
      // A copy that names another client than its envelope.
      await fail({ credentials: other.credentials, copy: { clientId } }),
      await fail({ copy: { clientId: 'scheduler' } }),
    ]
    const missing = await send(member, one('failed.discard', { id: 'f_none' }))
    expect(missing).toBe('failed_not_found')
    for (const copy of foreign) expect(await send(member, one('failed.discard', copy))).toBe(missing)
    expect(await send(member, many('failed.retry', [ours, ...foreign]))).toBe('changed_meanwhile')
    expect(await send(member, many('failed.retry', [ours]))).toBe('DONE')
    await ended()
    expect((await left()).map(({ id }) => id).sort()).toEqual(foreign.map(({ id }) => id).sort())
    // A client that also acts for another entity is not wholly theirs.
    await rows('update tokenmill.client set entities = entities || $2::uuid where client_id = $1', clientId, OTHER)
    const shared = await fail()
    expect(await send(member, one('failed.retry', shared))).toBe(missing)
    await rows(
      'update tokenmill.client set entities = array_remove(entities, $2::uuid) where client_id = $1',
      clientId,
      OTHER,
    )
    await until(async () => (await send(member, one('failed.retry', shared))) === 'DONE')
  })

  it('is done once, and not with the answer to another one', async () => {
    const [first, second] = [await fail(), await fail()]
    const request = bench.touch(admin, bench.on(admin, one('failed.discard', first)))
    const { proof } = request
    const stolen: [string, Unproved][] = [
      ['another copy', { ...request, ...one('failed.discard', second) }],
      ['another act', { ...request, act: 'failed.retry' }],
      ['many', { ...request, ...many('failed.discard', [first, second]) }],
    ]
    for (const [what, changed] of stolen)
      expect(await bench.send({ ...changed, proof }), what).toBe('passkey_challenge')
    // The console's key alone: no proof, and the proof of another person.
    const unproved = bench.on(admin, many('failed.discard', [first, second]))
    expect(await bench.send({ ...unproved, proof: null })).toBe('passkey_missing')
    expect(await bench.send(bench.touch(operator, unproved))).toBe('passkey_unknown')
    const selection = bench.touch(admin, bench.on(admin, many('failed.discard', [first, second])))
    const up = { ...selection, parameters: { ...selection.parameters, up_to: Date.now() } }
    expect(await bench.send(up)).toBe('passkey_challenge')
    expect((await left()).length).toBe(2)
    expect(await send(admin, one('failed.discard', first))).toBe('DONE')
    await ended()
    const again = bench.touch(admin, bench.on(admin, one('failed.retry', second)))
    expect(await bench.send(again)).toBe('DONE')
    await ended()
    expect(['passkey_counter', 'act_repeated']).toContain(await bench.send(again))
    expect([await sent(), await left()]).toEqual([1, []])
  })

  it('goes on where a worker died, and does nothing twice', async () => {
    const { queues, vault } = installation
    const { store } = vault
    const copies = [await fail(), await fail(), await fail()]
    const request = bench.on(admin, many('failed.retry', copies))
    const { nonce } = request
    const auditId = (
      await rows<{ id: number }>(
        `insert into tokenmill.audit (actor, action, subject) values ('person:x', 'failed.retry', 'all') returning audit_id as id`,
      )
    )[0]?.id as number
    // A worker that began each, and died: before the copy was sent, after it, and after somebody else had taken it.
    await store.transaction(async db => {
      const all = copies.map(({ id }) => ({ copyId: id, auditId, outcome: null }))
      await failedActs.insertAll(db, { nonce, action: 'failed.retry', kind: KIND, copies: all })
      await db.query({
        text: `update tokenmill.failed_act set due_at = now() + interval '1 hour', tries = (copy_id <> $2)::int where nonce = $1`,
        values: [nonce, copies[2]?.id],
      })
    })
    await failedRetry(queues, KIND, copies[1]?.id ?? '')
    await failedDiscard(queues, KIND, copies[2]?.id ?? '')
    await rows(`update tokenmill.failed_act set due_at = now() where nonce = $1`, nonce)
    await Promise.all([doFailedActs({ store, queues }, Date.now), doFailedActs({ store, queues }, Date.now)])
    await ended()
    expect(await outcomes(nonce)).toEqual(['done', 'done', 'gone'])
    expect([await sent(), await left()]).toEqual([2, []])
    expect(await rows(`select outcome, detail from tokenmill.audit where subject = $1`, copies[2]?.id)).toEqual([
      { outcome: 'failed', detail: { kind: KIND, why: 'gone', of_audit_id: auditId } },
    ])
  })

  it('waits for a worker that still has the job', async () => {
    const { queues } = installation
    const copy = await fail()
    // The job that failed is still there: the worker that made the copy has not removed it yet.
    const held = (await left()).find(({ id }) => id === copy.id)
    await queues.add(KIND, { id: copy.jobId, data: { jws: held?.jws } })
    const job = await queues.get(KIND, copy.jobId)
    const id = await failCopyOf(copy.jobId, job?.timestamp ?? 0, held?.jws ?? '')
    expect(await send(operator, one('failed.retry', { id }))).toBe('DONE')
    await until(
      async () => (await rows('select from tokenmill.failed_act where copy_id = $1 and due_at > now()', id)).length,
    )
    expect(await rows('select from tokenmill.failed_act where copy_id = $1 and outcome is not null', id)).toEqual([])
    await queues.remove(KIND, copy.jobId)
    await ended()
    expect(await sent()).toBe(1)
  })

  it('leaves rows whose proofs are right', async () => {
    const { wrong, right } = await bench.proofs()
    expect(wrong).toEqual([])
    expect(Object.keys(right)).toEqual(expect.arrayContaining(['failed.retry', 'failed.discard']))
    const check = async (selection: string, odd: object) => {
      const [row] = await rows<AuditRow>(
        `select ${AUDIT_COLUMNS} from tokenmill.audit where subject like 'f\\_%' and outcome = 'done' and detail->>'proof' like $1 limit 1`,
        `%"${selection}":%`,
      )
      if (!row) throw new Error(`no copy of ${selection}`)
      return checkProof(
        installation.vault.store,
        { ...row, ...odd, detail: { ...row.detail, ...odd } },
        checkPersonProof,
      )
    }
    const another = `f_${'A'.repeat(43)}`
    const differs = (name: string) => ({ proof: 'wrong', why: expect.stringContaining(`another ${name}`) })
    expect(await check('ids', { subject: another })).toEqual(differs('subject'))
    expect(await check('ids', { kind: 'act' })).toEqual(differs('kind'))
    // The signature covers the digest of the copies, from which no copy can be told.
    const unnamed = expect.stringMatching(/^passkey .* the signature does not name this one$/)
    expect(await check('filter', {})).toEqual({ proof: 'right', by: unnamed })
    expect(await check('filter', { kind: 'act' })).toEqual(differs('kind'))
  })

  async function failCopyOf(jobId: string, enqueuedAt: number, jws: string): Promise<string> {
    const copy = {
      jws,
      kind: KIND,
      code: 'files_away',
      attempt: 1,
      failedAt: Date.now() - 60_000,
      jobId,
      clientId: installation.credentials.signingKey.clientId,
      jti: randomUUID(),
    }
    return moveToFailed(installation.queues, KIND, { id: jobId, enqueuedAt }, copy)
  }
})
