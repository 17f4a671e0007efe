// `tokenmill schedule`, as its user types it.
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
}, 60_000)
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
  expect((await bench.cli(['schedule', 'remove', id ?? ''])).status).toBe(0)
  expect((await bench.cli(['schedule', 'remove', id ?? ''])).status).toBe(1)
  expect((await bench.cli(['schedule', 'remove', EXPIRY])).status).toBe(1)
  expect((await scheduled()).length).toBe(2)
  const audited = await bench.rows<{ action: string }>(
    `select action from tokenmill.audit where action like 'schedule.%' order by audit_id`,
  )
  expect(audited.map(({ action }) => action)).toEqual(['schedule.add', 'schedule.add', 'schedule.remove'])
})
