// What the pages Reports, Audit, People and Installation show on the pictures: schedules of which one failed and one is paused, people
// who came by invites, an open invite, clients, a key that was replaced, and a wall display. Each is made as its command makes it.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { sampleDay } from '../../cli/commands/demo/reports.ts'
import type { Store } from '../../src/store/pool.ts'
import { type Seat, signIn, takeSeat } from '../../test/producers/console/seats.ts'
import { NAMES } from './list.ts'

/** Runs a command of tokenmill, and returns what it prints. */
export type Run = (...args: string[]) => Promise<string>

const PEOPLE = [
  { name: 'Ada Brandt', roles: 'ADMIN' },
  { name: 'Jonas Weber', roles: 'ADMIN,OPERATOR' },
  { name: 'Marta Silva', roles: 'OPERATOR', isLimited: true },
] as const
const INVITED = 'Nora Lund'
const CLIENTS = [
  { name: 'shop-north', roles: 'TOKEN_WRITE,TOKEN_READ' },
  { name: 'accounting', roles: 'REPORT_READ,REPORT_REQUEST' },
] as const
const SCHEDULES = [
  { type: 'DAILY_TRANSACTION_REPORT', time: '02:00' },
  { type: 'TOKEN_ACTIVITY_REPORT', time: '02:30' },
  { type: 'MERCHANT_SETTLEMENT_REPORT', time: '03:00' },
] as const
/** The schedules are so old that a scheduler makes these days. */
const DAYS = 3
/** The transactions of a day; a day before has fewer. */
const [TRANSACTIONS, FEWER] = [500, 37]
const DAY_MS = 86_400_000
/** A scheduler looks about once a minute. */
const RUNS_MS_MAX = 150_000

/** It makes its checks every 3 s. */
const CHECKED_MS = 5_000

interface Place {
  dataDir: string
  entityId: string
}

/** Clients, a scope, a display, a key, transactions, and schedules whose runs a scheduler makes meanwhile. Returns the display's link. */
export async function setUp(run: Run, store: Store, { dataDir, entityId }: Place): Promise<{ displayLink: string }> {
  for (const { name, roles } of CLIENTS) await run('client', 'add', name, '--roles', roles, '--entity', entityId)
  await run('scope', 'add', '--entity', entityId, '--network-tokens')
  const [displayLink = ''] = /http\S+#\S+/.exec(await run('display', 'add', 'room 2')) ?? []
  await run('key', 'rotate', 'seal', '--reason', 'its year is over')
  for (const { type, time } of SCHEDULES)
    await run(
      'schedule',
      'add',
      '--type',
      type,
      '--time',
      time,
      '--zone',
      'Europe/Berlin',
      '--reason',
      'for accounting',
    )
  const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS
  for (let ago = 1; ago <= DAYS; ago += 1) {
    const file = join(dataDir, `transactions-${ago}.ndjson`)
    const lines = sampleDay(entityId, midnight - ago * DAY_MS).split('\n')
    await writeFile(file, `${lines.slice(0, TRANSACTIONS - ago * FEWER).join('\n')}\n`)
    await run('ingest', 'transactions', file)
  }
  const text = `update tokenmill.schedule set created_at = now() - make_interval(days => $1) where kind = 'report' and report_type <> $2`
  await store.query({ text, values: [DAYS, SCHEDULES[2].type] })
  return { displayLink }
}

/** People with passkeys; the first one writes a note on a batch. */
export async function comeIn(run: Run, browser: Browser, origin: string, entityId: string): Promise<void> {
  const seats: Seat[] = []
  for (const person of PEOPLE) {
    const { name, roles } = person
    const limits = 'isLimited' in person ? ['--entity', entityId] : []
    const [link = ''] = /http\S+#\S+/.exec(await run('person', 'invite', name, '--roles', roles, ...limits)) ?? []
    const seat = await takeSeat({ browser, complaints: [] })
    await seat.page.goto(link)
    await seat.page.getByRole('button', { name: 'Continue' }).click()
    await seat.page.getByText('Your passkey is enrolled').waitFor()
    await signIn(seat, origin)
    seats.push(seat)
  }
  await run('person', 'invite', INVITED, '--roles', 'VIEWER')
  const [first] = seats
  if (first) await note(first, origin)
  for (const { context } of seats) await context.close()
}

async function note({ page }: Seat, origin: string): Promise<void> {
  await page.goto(`${origin}/batches`)
  await page.getByRole('link', { name: NAMES.stopped }).click()
  await page.getByRole('link', { name: 'Write a note…' }).click()
  await page.locator('textarea').fill('The rest comes when the shop has closed its books.')
  await page.locator('button.main').click()
  await page.getByText('Done.').waitFor()
}

/** Waits until the schedules were run, and has the newest run of one have failed. */
export async function endNights(run: Run, store: Store): Promise<void> {
  const ended = `select count(*)::int as n from tokenmill.schedule_run where ended_at is not null and entity_id <> $1`
  const nobody = '00000000-0000-0000-0000-000000000000'
  const end = Date.now() + RUNS_MS_MAX
  const wanted = 2 * DAYS
  const count = async () => (await store.query<{ n: number }>({ text: ended, values: [nobody] })).rows[0]?.n ?? 0
  while ((await count()) < wanted && Date.now() < end) await pause(1_000)
  await store.query({
    text: `update tokenmill.schedule_run as r set state = 'FAILED', reason = 'role_missing', receipt_id = null, report_uid = null, ended_at = now() from tokenmill.schedule as s
where s.schedule_id = r.schedule_id and s.report_type = $1
  and r.business_date = (select max(o.business_date) from tokenmill.schedule_run as o where o.schedule_id = r.schedule_id)`,
    values: [SCHEDULES[1].type],
  })
  const paused = `select schedule_id as id from tokenmill.schedule where report_type = $1`
  const [third] = (await store.query<{ id: string }>({ text: paused, values: [SCHEDULES[2].type] })).rows
  if (third) await run('schedule', 'pause', third.id, '--reason', 'accounting moves to another system')
  await run('audit', 'verify')
  await pause(CHECKED_MS)
}
