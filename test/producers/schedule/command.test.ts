// `tokenmill schedule`: what it stores and prints.
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Bench, openBench } from '../../cli/command-bench.ts'
import { EXPIRY } from './bundle.ts'

const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const NIGHTLY = ['schedule', 'add', '--type', 'DAILY_TRANSACTION_REPORT', '--time', '02:00', '--zone', 'Europe/Berlin']

let bench: Bench
let clientId: string
beforeAll(async () => {
  bench = await openBench()
  await bench.cli(['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek')])
  const add = async (name: string, roles: string) => {
    const words = ['client', 'add', name, '--entity', ENTITY, '--roles', roles, '--out', join(bench.dataDir, name)]
    const { stdout, stderr } = await bench.cli([...words, '--json'])
    return (JSON.parse(stdout || stderr) as { client_id: string }).client_id
  }
  clientId = await add('shop', 'REPORT_REQUEST,REPORT_READ')
  await add('clerk', 'TOKEN_READ')
})
afterAll(() => bench?.close())

const scheduled = async () =>
  JSON.parse((await bench.cli(['schedule', 'list', '--json'])).stdout) as Record<string, unknown>[]

it('refuses what could not be made at night, before it is written down', async () => {
  const wrong: [string[], number][] = [
    [['--client', 'nobody'], 1],
    [['--client', 'clerk'], 64],
    [['--client', 'shop', '--entity', '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'], 64],
    [['--client', 'shop', '--entity', ENTITY, '--all-entities'], 64],
    [['--client', 'shop', '--parameter', 'clearingDate=2026-01-01'], 64],
    [['--client', 'shop', '--time', '24:00'], 64],
    [['--client', 'shop', '--time', '2:00'], 64],
    [['--client', 'shop', '--zone', 'Mars/Olympus'], 64],
    [['--client', 'shop', '--zone', '+01:00'], 64],
    [['--client', 'shop', '--type', 'BATCH_REPORT'], 64],
    [['--client', 'shop', '--type', 'SCHEME_TOKEN_REPORT'], 64],
    [['--client', 'shop', '--type', 'INVOICE', '--parameter', 'taxPercent=101'], 64],
    [['--client', 'shop', '--mime', 'image/png'], 64],
  ]
  for (const [more, status] of wrong)
    expect((await bench.cli([...NIGHTLY, ...more])).status, more.join(' ')).toBe(status)
  expect((await scheduled()).map(schedule => schedule['kind'])).toEqual(['token-expiry'])
})

it('adds, lists and removes, with an audit row each; the sweep of tokens is nobody’s to remove', async () => {
  const added = await bench.cli([...NIGHTLY, '--client', 'shop', '--mime', 'application/pdf', '--json'])
  expect(added.status).toBe(0)
  const { schedule_id: id, next_due: next } = JSON.parse(added.stdout) as Record<string, string>
  expect(next).toMatch(/T0[01]:00:00\.000Z$/)
  const invoice = ['--type', 'INVOICE', '--parameter', 'taxPercent=19', '--all-entities', '--client', clientId]
  expect((await bench.cli([...NIGHTLY, ...invoice])).status).toBe(0)
  expect(await scheduled()).toMatchObject([
    { schedule_id: EXPIRY, kind: 'token-expiry', time: '00:15', zone: 'UTC', runs: [] },
    {
      schedule_id: id,
      client_id: clientId,
      report_type: 'DAILY_TRANSACTION_REPORT',
      entity_id: ENTITY,
      mime_type: 'application/pdf',
      parameters: {},
      next_due: next,
      runs: [],
    },
    { report_type: 'INVOICE', entity_id: 'all', parameters: { taxPercent: '19' } },
  ])
  expect((await bench.cli(['schedule', 'list'])).stdout).toContain('02:00 Europe/Berlin')
  expect((await bench.cli(['schedule', 'remove', id ?? '', '--reason', 'moved'])).status).toBe(0)
  expect((await bench.cli(['schedule', 'remove', id ?? ''])).status).toBe(1)
  expect((await bench.cli(['schedule', 'remove', EXPIRY])).status).toBe(1)
  expect((await scheduled()).length).toBe(2)
  const audited = await bench.rows<{ action: string; actor: string; reason: string | null }>(
    `select action, actor, detail->>'reason' as reason from tokenmill.audit where action like 'schedule.%' and outcome = 'done' order by audit_id`,
  )
  const machine = expect.stringMatching(/^machine:.+@.+/)
  expect(audited).toEqual([
    { action: 'schedule.add', actor: machine, reason: null },
    { action: 'schedule.add', actor: machine, reason: null },
    { action: 'schedule.remove', actor: machine, reason: 'moved' },
  ])
})

it('runs a date now, once: another run of it is refused, and one that failed is made again', async () => {
  const { stdout } = await bench.cli([...NIGHTLY, '--client', 'shop', '--json'])
  const id = (JSON.parse(stdout) as Record<string, string>)['schedule_id'] ?? ''
  const date = new Date(Date.now() - 20 * 86_400_000).toISOString().slice(0, 10)
  const runs = async (...words: string[]) =>
    (await bench.cli(['schedule', 'runs', ...words, '--json'])).json<Record<string, unknown>[]>()
  const run = (...words: string[]) => bench.cli(['schedule', 'run', id, ...words])
  expect(await runs(id)).toEqual([])

  const today = new Date().toISOString().slice(0, 10)
  expect(await run(today)).toMatchObject({ status: 1, stderr: expect.stringContaining('has not ended yet') })
  expect(await run('2026-02-30')).toMatchObject({ status: 64 })
  expect(await bench.cli(['schedule', 'run', ENTITY, date])).toMatchObject({ status: 1 })
  expect(await run(date, '--reason', 'the disk was full')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('1 run of'),
  })
  expect(await runs(id)).toMatchObject([{ schedule_id: id, date, entity_id: ENTITY, state: 'DUE', late: false }])
  const again = await run(date)
  expect(again).toMatchObject({ status: 1 })
  expect(again.stderr).toContain(`A run of ${date} is under way already: it is DUE.`)

  await bench.rows(`update tokenmill.schedule_run set state = 'FAILED', reason = 'role_missing', next_at = null, ended_at = now()
where schedule_id = '${id}'`)
  const listed = await bench.cli(['schedule', 'runs', id])
  expect(listed.stdout).toContain("role_missing: the schedule's client lacks the role REPORT_REQUEST")
  expect(await runs('--state', 'FAILED')).toMatchObject([{ reason: 'role_missing' }])
  await bench.rows(`update tokenmill.client set roles = '{TOKEN_READ}' where client_id = '${clientId}'`)
  expect((await run(date)).stderr).toContain('lacks the role REPORT_REQUEST')
  await bench.rows(`update tokenmill.client set roles = '{REPORT_REQUEST}' where client_id = '${clientId}'`)
  expect(await run(date)).toMatchObject({ status: 0 })
  expect(await runs(id)).toMatchObject([{ date, state: 'DUE' }])
  expect(await runs('--state', 'FAILED')).toEqual([])

  const audited = await bench.rows<{ subject: string; detail: unknown }>(
    `select subject, detail from tokenmill.audit where action = 'schedule.run' and outcome = 'done' order by audit_id`,
  )
  expect(audited).toEqual([
    { subject: id, detail: { date, runs: 1, reason: 'the disk was full', entity_id: ENTITY } },
    { subject: id, detail: { date, runs: 1, entity_id: ENTITY } },
  ])
  expect((await bench.cli(['schedule', 'remove', id])).status).toBe(0)
  expect(await run(date)).toMatchObject({ status: 1 })
})

it('makes up for nights that no scheduler saw before a later one is run by hand', async () => {
  const { stdout } = await bench.cli([...NIGHTLY, '--client', 'shop', '--json'])
  const id = (JSON.parse(stdout) as Record<string, string>)['schedule_id'] ?? ''
  await bench.rows(`update tokenmill.schedule set created_at = now() - interval '30 days' where schedule_id = '${id}'`)
  const date = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  expect((await bench.cli(['schedule', 'run', id, date])).status).toBe(0)
  const runs = (await bench.cli(['schedule', 'runs', id, '--json'])).json<{ date: string }[]>()
  // The runs of seven missed nights are made. Before 02:00 in Berlin the date that is run by hand is an additional one.
  expect(runs[0]?.date).toBe(date)
  expect(new Set(runs.map(run => run.date)).size).toBe(runs.length)
  expect(runs.length).toBeGreaterThanOrEqual(7)
})

it('pauses and resumes; while it is paused nothing is run, and what it missed is due from then on', async () => {
  const { stdout } = await bench.cli([...NIGHTLY, '--client', 'shop', '--json'])
  const id = (JSON.parse(stdout) as Record<string, string>)['schedule_id'] ?? ''
  await bench.rows(`update tokenmill.schedule set created_at = now() - interval '3 days' where schedule_id = '${id}'`)
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  expect(await bench.cli(['schedule', 'resume', id])).toMatchObject({ status: 1 })
  expect(await bench.cli(['schedule', 'pause', id, '--reason', 'the folder moves'])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('is paused'),
  })
  expect((await bench.cli(['schedule', 'pause', id])).stderr).toContain('is paused')
  expect((await bench.cli(['schedule', 'run', id, yesterday])).stderr).toContain('schedule resume')
  expect((await scheduled()).find(one => one['schedule_id'] === id)).toMatchObject({ paused_at: expect.any(String) })
  expect((await bench.cli(['schedule', 'list'])).stdout).toMatch(new RegExp(`${id}.* paused `))
  expect((await bench.cli(['schedule', 'resume', id])).stdout).toMatch(/goes on; [23] missed dates are due now/)
  expect((await scheduled()).find(one => one['schedule_id'] === id)).toMatchObject({ next_due: expect.any(String) })
  expect((await bench.cli(['schedule', 'pause', EXPIRY])).stderr).toContain('always suspended')
  expect((await bench.cli(['schedule', 'pause', ENTITY])).status).toBe(1)
  const audited = await bench.rows<{ action: string; outcome: string }>(
    `select action, outcome from tokenmill.audit where subject = '${id}' order by audit_id`,
  )
  expect(audited.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
    'schedule.add done',
    'schedule.resume refused',
    'schedule.pause done',
    'schedule.pause refused',
    'schedule.run refused',
    'schedule.resume done',
  ])
})
