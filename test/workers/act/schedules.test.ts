// An act of a person on a schedule is done for a person who signed exactly this, may do it, and sees this schedule; and only while the
// schedule is as the person saw it.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Act } from '../../../src/job/system/act.ts'
import { seenOfRuns, seenOfSchedule } from '../../../src/job/system/schedule-act.ts'
import * as runs from '../../../src/store/report/schedule-runs.ts'
import * as schedules from '../../../src/store/report/schedules.ts'
import { describeStore } from '../../support/engines.ts'
import { grantAll } from '../../support/grant-all.ts'
import { ENTITY, type Installation } from '../../support/installation.ts'
import { openAuthenticator } from '../../vault/passkey/authenticator.ts'
import { type ActBench, type Member, openActBench, openActInstallation, SITE, type Unproved } from './bench.ts'

const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const EXPIRY = '7e1f0c2a-5b3d-4c6e-8f90-a1b2c3d4e5f6'
const NO_ID = 'not-an-id'
const DAY_MS = 86_400_000
const dayAgo = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)
const ACTS = ['schedule.pause', 'schedule.resume', 'schedule.run'] as const
type Name = (typeof ACTS)[number]

describeStore('an act on a schedule', engine => {
  let installation: Installation
  let bench: ActBench
  let operator: Member
  beforeAll(async () => {
    installation = await openActInstallation(engine)
    bench = await openActBench(installation)
    operator = await bench.join('Olaf', ['OPERATOR'])
    const { store, ring } = installation.vault
    await store.query({ text: `update tokenmill.client set roles = roles || '{REPORT_REQUEST}'::text[]` })
    await grantAll(store, ring)
  })
  afterAll(async () => {
    await bench?.close()
    await installation?.close()
  })

  const rows = async <R = Record<string, unknown>>(text: string, ...values: unknown[]) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const add = async (more: Partial<schedules.NewSchedule> = {}) => {
    const scheduleId = randomUUID()
    await schedules.insert(installation.vault.store, {
      scheduleId,
      clientId: installation.credentials.signingKey.clientId,
      entityId: ENTITY,
      reportType: 'TOKEN_ACTIVITY_REPORT',
      mimeType: 'text/csv',
      parameters: {},
      time: '00:00',
      zone: 'UTC',
      ...more,
    })
    return scheduleId
  }
  const find = async (scheduleId: string) =>
    (await schedules.find(installation.vault.store, scheduleId)) ?? expect.fail('no schedule')
  const runsOf = (scheduleId: string) => runs.listOf(installation.vault.store, scheduleId, 100)
  /** The request of an act, as the person sees the schedule now. */
  const about = async (
    member: Pick<Member, 'personId'>,
    act: Name,
    subject: string,
    { date = dayAgo(1), ...odd }: Partial<Unproved> & { date?: string } = {},
  ) => {
    const isRun = act === 'schedule.run'
    const isId = subject !== NO_ID
    const known = (isId ? await runsOf(subject) : []).filter(run => run.businessDate === date)
    const schedule = isId ? await schedules.find(installation.vault.store, subject) : undefined
    const seen = isRun ? seenOfRuns(known) : seenOfSchedule(schedule ?? { removedAt: null, pausedAt: null })
    return bench.on(member, { act, subject, parameters: isRun ? { date } : {}, seen }, odd)
  }
  const send = async (member: Member, ...act: [Name, string, Parameters<typeof about>[3]?]) =>
    bench.send(bench.touch(member, await about(member, ...act)))

  it('pauses, resumes and runs with one touch each, as the command does, and leaves rows of its entity', async () => {
    const id = await add()
    expect(await send(operator, 'schedule.pause', id)).toBe('DONE')
    expect((await find(id)).pausedAt).toBeGreaterThan(0)
    expect(await send(operator, 'schedule.run', id)).toBe('act_state')
    expect(await send(operator, 'schedule.resume', id)).toBe('DONE')
    expect(await find(id)).toMatchObject({ pausedAt: null, resumedAt: expect.any(Number) })
    expect(await send(operator, 'schedule.run', id)).toBe('DONE')
    expect(await runsOf(id)).toMatchObject([{ businessDate: dayAgo(1), entityId: ENTITY, state: 'DUE' }])
    const found = await rows(
      `select actor, action, outcome, entity_id, detail from tokenmill.audit where subject = $1 order by audit_id`,
      id,
    )
    const own = { actor: `person:${operator.personId}`, entity_id: ENTITY }
    const detail = { reason: 'a test', credential: operator.authenticator.credentialId, proof: expect.any(String) }
    expect(found).toMatchObject([
      { ...own, action: 'schedule.pause', outcome: 'done', detail },
      { ...own, action: 'schedule.run', outcome: 'refused', detail: { why: 'paused' } },
      { ...own, action: 'schedule.resume', outcome: 'done', detail: { ...detail, missed: 0 } },
      { ...own, action: 'schedule.run', outcome: 'done', detail: { ...detail, date: dayAgo(1), runs: 1 } },
    ])
  })

  it('refuses a run that is under way, one that ended well, and a day that has not ended', async () => {
    const id = await add()
    const end = (state: string, reason: string | null) =>
      rows(
        `update tokenmill.schedule_run set state = $2, reason = $3, next_at = null, ended_at = now() where schedule_id = $1`,
        ...[id, state, reason],
      )
    expect(await send(operator, 'schedule.run', id, { date: dayAgo(0) })).toBe('act_state')
    expect(await send(operator, 'schedule.run', id)).toBe('DONE')
    expect(await send(operator, 'schedule.run', id)).toBe('schedule_running')
    await end('FAILED', 'role_missing')
    expect(await send(operator, 'schedule.run', id)).toBe('DONE')
    await end('SUCCEEDED', null)
    expect(await send(operator, 'schedule.run', id)).toBe('act_state')
    expect(await runsOf(id)).toHaveLength(1)
  })

  it('is refused where the schedule changed after it was shown', async () => {
    const id = await add()
    const touched = async (act: Name) => bench.touch(operator, await about(operator, act, id))
    const { store } = installation.vault
    const pause = await touched('schedule.pause')
    await schedules.pause(store, id)
    expect(await bench.send(pause)).toBe('changed_meanwhile')
    // Another pause is another state.
    const resume = await touched('schedule.resume')
    await schedules.resume(store, id, Date.now())
    await schedules.pause(store, id)
    expect(await bench.send(resume)).toBe('changed_meanwhile')
    await schedules.resume(store, id, Date.now())
    const run = await touched('schedule.run')
    const key = { scheduleId: id, businessDate: dayAgo(1), entityId: ENTITY }
    await runs.insert(store, [{ ...key, receiptId: null, dueAt: Date.now() }])
    expect(await bench.send(run)).toBe('changed_meanwhile')
    expect((await find(id)).pausedAt).toBe(null)
    expect(await send(operator, 'schedule.resume', id)).toBe('act_state')
    await schedules.remove(installation.vault.store, id)
    expect(await bench.send(bench.touch(operator, await about(operator, 'schedule.pause', id)))).toBe(
      'schedule_not_found',
    )
    expect(await send(operator, 'schedule.pause', EXPIRY)).toBe('act_state')
  })

  it('permits each role its own acts', async () => {
    const viewer = await bench.join('Vera', ['VIEWER'])
    const admin = await bench.join('Ada', ['ADMIN'])
    const id = await add()
    for (const act of ACTS) expect(await send(viewer, act, id), act).toBe('act_forbidden')
    for (const member of [operator, admin])
      for (const act of ['schedule.pause', 'schedule.resume'] as const)
        expect(await send(member, act, id), act).toBe('DONE')
    expect(await send(admin, 'schedule.run', id)).toBe('DONE')
    expect(await send(operator, 'schedule.run', id, { date: dayAgo(2) })).toBe('DONE')
  })

  it('on a schedule of another entity is answered as one on a schedule that is not there', async () => {
    const member = await bench.join('Enno', ['OPERATOR'], [ENTITY])
    const [ours, others, all] = [await add(), await add({ entityId: OTHER }), await add({ entityId: null })]
    const error = async (act: Name, id: string) =>
      JSON.stringify((await bench.ask(bench.touch(member, await about(member, act, id)))).error).replace(
        /"timestamp":\d+/,
        '',
      )
    for (const act of ACTS) {
      const missing = await error(act, randomUUID())
      expect(missing).toContain('schedule_not_found')
      for (const id of [others, EXPIRY, NO_ID]) expect(await error(act, id), id).toBe(missing)
    }
    expect(await send(member, 'schedule.pause', ours)).toBe('DONE')
    // Its client acts for this entity alone.
    expect(await send(member, 'schedule.pause', all)).toBe('DONE')
    const { store, ring } = installation.vault
    const { clientId } = installation.credentials.signingKey
    const act = (entities: string[]) =>
      rows('update tokenmill.client set entities = $2 where client_id = $1', clientId, entities)
    await act([ENTITY, OTHER])
    await grantAll(store, ring)
    expect(await send(member, 'schedule.resume', all)).toBe('schedule_not_found')
    // Whoever can only write the table doesn't move it to these people.
    await act([ENTITY])
    expect(await send(member, 'schedule.resume', all)).toBe('schedule_not_found')
    await grantAll(store, ring)
    expect(await send(member, 'schedule.resume', all)).toBe('DONE')
    expect([(await find(others)).pausedAt, await runsOf(others)]).toEqual([null, []])
  })

  it('is not done by the console’s key and queues alone', async () => {
    const [id, other] = [await add(), await add()]
    const paused = await add()
    await schedules.pause(installation.vault.store, paused)
    const stranger = { ...operator, authenticator: openAuthenticator(SITE) }
    for (const act of ACTS) {
      const of = act === 'schedule.resume' ? paused : id
      const request = () => about(operator, act, of)
      const touched = async (changed: Partial<Act>) => ({ ...bench.touch(operator, await request()), ...changed })
      const tries: [string, Act, string][] = [
        ['no proof', { ...(await request()), proof: null }, 'passkey_missing'],
        ['an unknown passkey', bench.touch(stranger, await request()), 'passkey_unknown'],
        ['another schedule', await touched({ subject: other }), 'passkey_challenge'],
        ['another reason', await touched({ reason: 'said by nobody' }), 'passkey_challenge'],
        [
          'another act',
          await touched(
            act === 'schedule.run'
              ? { act: 'schedule.pause', parameters: {} }
              : { act: 'schedule.run', parameters: { date: dayAgo(1) } },
          ),
          'passkey_challenge',
        ],
        ...(act === 'schedule.run'
          ? [['another day', await touched({ parameters: { date: dayAgo(3) } }), 'passkey_challenge'] as const]
          : []
        ).map(one => [...one] as [string, Act, string]),
      ]
      for (const [what, wrong, said] of tries) expect(await bench.send(wrong), `${act}: ${what}`).toBe(said)
    }
    expect([(await find(id)).pausedAt, (await find(other)).pausedAt]).toEqual([null, null])
    expect((await find(paused)).pausedAt).not.toBe(null)
    expect([...(await runsOf(id)), ...(await runsOf(other))]).toEqual([])
  })

  it('leaves rows whose proofs are right', async () => {
    const { wrong, right } = await bench.proofs()
    expect(wrong).toEqual([])
    expect(Object.keys(right)).toEqual(expect.arrayContaining(['schedule.pause', 'schedule.resume', 'schedule.run']))
  })
})
