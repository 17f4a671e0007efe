// What the rows of acts say, against what is written here once more: an act that its row lets anybody do, or in any state, is done.
import { describe, expect, it } from 'vitest'
import { type ScheduleAction, scheduleRefusal } from '../../../src/job/schedule/refusal.ts'
import { ACT_ROWS, ACTS, Act, type ActName, rowOf } from '../../../src/job/system/act.ts'
import { has } from '../../../src/job/system/act-row.ts'
import { BATCH_ACTS, type BatchActName, batchRefusal } from '../../../src/job/system/batch-act.ts'
import { type FailedActName, isAble } from '../../../src/job/system/failed-act.ts'
import { SCHEDULE_ACTS } from '../../../src/job/system/schedule-act.ts'

const PAUSED_AT = 1_700_000_000_000

describe('the row of an act', () => {
  it.each(ACTS)('%s says of whom, and of what, it is', name => {
    const { roles, reach, on } = rowOf(name)
    const mayBeOf = {
      everybody: ['person.enrol', 'passkey.add', 'passkey.remove', 'list.exported', 'identity.connect'],
      admins: ['batch.cancel', 'failed.discard', 'person.invite', 'person.change', 'person.link', 'person.revoke'],
    }
    const expected = [...mayBeOf.everybody, 'identity.disconnect'].includes(name)
      ? ['VIEWER', 'OPERATOR', 'ADMIN']
      : [...mayBeOf.admins, 'invite.revoke'].includes(name)
        ? ['ADMIN']
        : ['OPERATOR', 'ADMIN']
    expect(roles).toEqual(expected)
    expect(reach === 'all').toBe(on === 'people')
    expect(reach === 'own').toBe(['invited', 'passkey', 'identity'].includes(on))
  })

  it('says which acts nobody can take back', () => {
    expect(ACTS.filter(name => rowOf(name).isFinal)).toEqual([
      ...['batch.cancel', 'failed.discard', 'person.enrol', 'passkey.remove', 'identity.disconnect'],
      ...['person.revoke', 'invite.revoke'],
    ])
  })

  it.each(['constructor', 'toString', '__proto__', 'batch', 'batch.', 'batch.undefined', 'person.prove'])(
    'is not found by the name %j',
    name => expect(has(ACT_ROWS, name)).toBe(false),
  )

  const asked = (act: ActName, odd: object) =>
    Act.safeParse({
      act,
      subject: 's',
      parameters: {},
      seen: null,
      reason: 'why',
      person_id: '00000000-0000-4000-8000-000000000000',
      nonce: 'A'.repeat(22),
      expires_at: 1,
      proof: null,
      ...odd,
    }).error?.issues.map(({ path }) => path.join())

  it('has the form of its request: parameters, what was seen, and whether there is a reason', () => {
    const client = { client_id: `c${'0'.repeat(25)}` }
    const list = { list: 'batches' }
    const tries: [ActName, object, string[] | undefined][] = [
      ['batch.pause', { parameters: client, seen: 'RUNNING' }, undefined],
      ['batch.pause', { parameters: client, seen: 'RUNNING', reason: null }, undefined],
      ['batch.pause', { parameters: client }, ['seen']],
      ['batch.pause', { seen: 'RUNNING' }, ['parameters']],
      ['batch.note', { parameters: client, seen: 'RUNNING', reason: null }, ['reason']],
      ['schedule.run', { seen: 'NONE', parameters: { date: '2026-01-01' } }, undefined],
      ['schedule.run', { seen: 'NONE', parameters: { date: 'yesterday' } }, ['parameters']],
      ['schedule.run', { seen: 'NONE', parameters: { date: '2026-02-30' } }, ['parameters']],
      ['batch.cancel', { seen: 'RUNNING', parameters: { client_id: 'c1' } }, ['parameters']],
      ['schedule.resume', { seen: 'GOING', parameters: { date: '2026-01-01' } }, ['parameters']],
      ['person.enrol', { seen: 'NONE' }, ['seen']],
      ['person.revoke', { seen: 'NONE' }, undefined],
      ['list.exported', { parameters: list }, undefined],
      ['identity.connect', { parameters: list }, ['parameters']],
    ]
    for (const [act, odd, wrong] of tries) expect({ act, odd, wrong: asked(act, odd) }).toEqual({ act, odd, wrong })
  })
})

it('an act on a batch is for the states of its row, and says why it is for no other one', () => {
  const said = (name: BatchActName) =>
    (['RUNNING', 'OPEN', 'STALLED', 'ABANDONED', 'PAUSED', 'PAUSED', 'FINISHED', 'CANCELLED'] as const).map(
      // The second is at its sender's limit.
      (state, at) => batchRefusal(name, { state, pausedAt: at === 4 ? PAUSED_AT : null }),
    )
  const can = undefined
  expect(Object.fromEntries(Object.keys(BATCH_ACTS).map(name => [name, said(name as BatchActName)]))).toEqual({
    'batch.pause': [can, can, can, can, 'paused', 'at_limit', 'finished', 'cancelled'],
    'batch.resume': [...Array(4).fill('not_paused'), can, 'at_limit', 'finished', 'cancelled'],
    'batch.cancel': [can, can, can, can, can, can, 'finished', 'cancelled'],
    'batch.note': Array(8).fill(can),
  })
})

it('an act on a schedule is for one state and kind, and says why it is for no other one', () => {
  const said = (name: ScheduleAction) =>
    ['report', 'token-expiry'].flatMap(kind =>
      [null, PAUSED_AT].flatMap(pausedAt =>
        [null, PAUSED_AT].map(removedAt => scheduleRefusal(name, { kind, pausedAt, removedAt })),
      ),
    )
  const [can, gone, expiry] = [undefined, 'no_schedule', 'no_report']
  expect(Object.fromEntries(Object.keys(SCHEDULE_ACTS).map(name => [name, said(name as ScheduleAction)]))).toEqual({
    'schedule.run': [can, gone, 'paused', gone, can, gone, 'paused', gone],
    'schedule.pause': [can, gone, 'paused', gone, expiry, gone, expiry, gone],
    'schedule.resume': ['not_paused', gone, can, gone, expiry, gone, expiry, gone],
  })
})

it('only discarding is for copies that can not be sent again', () => {
  const said = (name: FailedActName) => [undefined, 'expired'].map(whyNot => isAble({ whyNot }, name))
  expect([said('failed.retry'), said('failed.discard')]).toEqual([
    [true, false],
    [true, true],
  ])
})
