// Uses the console for `--minutes`, as a team would at once: people watch Now or an open batch and come back, read every page, sign in and out, act and
// take lists as CSV, while files are migrated. Its memory must stay flat, and nothing that it keeps may pile up.
import { rm } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { writeSample } from '../../bin/sample/cards.ts'
import { freePorts } from '../../test/ops/free-ports.ts'
import type { Installation } from '../../test/support/installation.ts'
import { failCopy } from '../../test/workers/act/failed-copies.ts'
import { act, makeMember, signIn } from '../console/member.ts'
import { residentMiB, startProcesses } from '../console/processes.ts'
import { findAddresses } from '../console/routes.ts'
import { type Caller, makePeople, openCaller, openVisitor } from '../console/visitor.ts'
import { COLLECTED, openCollector } from './collector.ts'
import { type Course, growthOf, openCourse } from './course.ts'
import { runCommand, type SoakOptions } from './run.ts'

const READERS = 6
const WATCHERS = 20
const MEMBERS = 4
/** A file that is migrated again and again, with other cards each time. */
const FILE_ROWS = 50_000
const FILE_EVERY_MS = 30_000
/**
 * Memory may grow by this much from one half of the run to the other: the longer the run, the smaller a leak it finds. The first
 * minutes fill caches.
 */
const GROWTH_MIB_MAX = 8
const SETTLED_MINUTES = 5
/** A shorter run says nothing about growth. */
const LEAST_MINUTES = 20
const SECOND = 1_000
/** The console removes what is over once a minute. */
const SWEPT_MS = 75_000

export async function soakConsole({ place, engine, check, minutes }: SoakOptions & { minutes: number }): Promise<void> {
  const installation = await place.open(engine)
  const [port = 0] = await freePorts(1)
  const running = await startProcesses(installation, port, COLLECTED)
  const collector = await openCollector(running.console)
  const caller = openCaller(port)
  const course = openCourse(async () => {
    await collector.collect()
    return residentMiB(running.console.pid)
  })
  const until = performance.now() + minutes * 60_000
  const goesOn = () => performance.now() < until
  const used: Used = { installation, port, caller, course, goesOn, dir: place.dir }
  const part = `console, ${minutes} minutes`
  try {
    const people = await makePeople(installation.vault, READERS, null)
    const readers = [
      ...people,
      ...(await makePeople(installation.vault, READERS, [installation.credentials.entityId ?? ''])),
    ]
    await Promise.all([
      migrate(used),
      ...Array.from({ length: WATCHERS }, (_none, n) => {
        const cookie = readers[n % readers.length] ?? ''
        return watch(used, cookie, n % 2 === 0 ? async () => '/now/live' : () => streamOfBatch(installation))
      }),
      ...[people, readers.slice(READERS)].map(cookies => read(used, cookies)),
      ...Array.from({ length: MEMBERS }, () => visit(used)),
      takeLists(used, people[0] ?? ''),
      fail(used),
      course.observe(goesOn),
    ])
    const told = course.tell()
    check(part, 'answers every request', told.others, {})
    for (const what of ['page', 'news', 'news of a batch', 'sign-in', 'act', 'csv'])
      check(part, `${what}: some`, (told.counts[what] ?? 0) > 0, true)
    const growth = growthOf(course.memory(), SETTLED_MINUTES)
    if (minutes >= LEAST_MINUTES)
      check(part, `grows by at most ${GROWTH_MIB_MAX} MiB (${growth.toFixed(1)})`, growth <= GROWTH_MIB_MAX, true)
    await pause(SWEPT_MS)
    check(part, 'keeps no session, challenge or act that is over', await leftOver(installation), {
      sessions: 0,
      challenges: 0,
      acts: 0,
    })
  } finally {
    caller.close()
    collector.close()
    await running.close()
    await installation.close()
  }
}

interface Used {
  installation: Installation
  port: number
  caller: Caller
  course: Course
  goesOn: () => boolean
  dir: string
}

async function migrate({ installation, goesOn, dir }: Used): Promise<void> {
  for (let n = 0; goesOn(); n += 1) {
    const next = performance.now() + FILE_EVERY_MS
    const file = join(dir, `soak-console-${n}.csv`)
    await writeSample(file, { rows: FILE_ROWS, seed: 1_000 + n, now: Date.now() })
    await runCommand(installation, ['migrate', file])
    await rm(file)
    while (goesOn() && performance.now() < next) await pause(SECOND)
  }
}

/** Watches for some seconds, leaves, and comes back. `choose` is asked each time what is watched. */
async function watch({ port, course, goesOn }: Used, cookie: string, choose: () => Promise<string>): Promise<void> {
  while (goesOn()) {
    const headers = { host: `localhost:${port}`, cookie }
    const path = await choose()
    const stream = get({ host: 'localhost', port, path, headers, agent: false }, response => {
      // A session has four streams at most; a fifth is told so.
      const what = path === '/now/live' ? 'news' : 'news of a batch'
      if (response.statusCode !== 200 && response.statusCode !== 429) course.other(what, response.statusCode ?? 0)
      response.on('data', () => course.took(what, 0))
    })
    stream.on('error', () => {})
    await pause((5 + 25 * Math.random()) * SECOND)
    stream.destroy()
  }
}

/** One that has rows left; undefined: there is none. */
async function openBatch({ vault }: Installation): Promise<number | undefined> {
  const { rows } = await vault.store.query<{ no: number }>({
    text: `select batch_no as no from tokenmill.batch where finished_at is null and cancelled_at is null order by random() limit 1`,
  })
  return rows[0]?.no
}

/** The stream ends with the batch. Of Now while none is open. */
async function streamOfBatch(installation: Installation): Promise<string> {
  const no = await openBatch(installation)
  return no === undefined ? '/now/live' : `/batches/${no}/live`
}

/** Reads pages at random, and finds new ones every minute. */
async function read({ port, course, goesOn }: Used, cookies: readonly string[]): Promise<void> {
  const { ask, close } = openVisitor(port, cookies)
  while (goesOn()) {
    const { addresses } = await findAddresses(ask, ['/now'])
    const known = [...addresses.values()].flat()
    const again = performance.now() + 60 * SECOND
    while (goesOn() && performance.now() < again) {
      const to = known[Math.floor(Math.random() * known.length)] ?? '/now'
      const { status, ms } = await ask('GET', to)
      // What a page led to may be gone since: a failed job that was retried.
      if (status !== 200 && status !== 404 && status !== 429) course.other(to, status)
      else course.took('page', ms)
      await pause(200)
    }
  }
  close()
}

/** Signs in, pauses and resumes a batch or retries a failed job, looks at the list, and signs out. */
async function visit({ installation, port, caller, course, goesOn }: Used): Promise<void> {
  const member = await makeMember(installation.vault, port)
  while (goesOn()) {
    const cookie = await course.timed('sign-in', () => signIn(caller, member))
    const no = await openBatch(installation)
    if (no !== undefined)
      for (const name of ['pause', 'resume'])
        await course.timed('act', () => act(caller, { ...member, cookie }, `/batches/${no}/${name}`))
    const failed = await caller.call('GET', '/failed?kind=report', { cookie })
    const [, copy] = /href="(\/failed\/report\/f_[\w-]+)"/.exec(failed.text) ?? []
    if (copy !== undefined) await course.timed('act', () => act(caller, { ...member, cookie }, `${copy}/discard`))
    await caller.call('POST', '/sign-out', { cookie, form: {} })
    await pause(3 * SECOND)
  }
}

async function takeLists({ caller, course, goesOn }: Used, cookie: string): Promise<void> {
  while (goesOn()) {
    const { status } = await course.timed('csv', () => caller.call('POST', '/batches/csv', { cookie, form: {} }))
    if (status !== 200) course.other('/batches/csv', status)
    await pause(10 * SECOND)
  }
}

async function fail({ installation, goesOn }: Used): Promise<void> {
  const { queues, credentials } = installation
  while (goesOn()) {
    await failCopy(queues, { credentials })
    await pause(2 * SECOND)
  }
}

/** Rows that are over and should have been removed. A person's last session is kept, and verdicts are kept for a day. */
async function leftOver({ vault }: Installation): Promise<Record<string, number> | undefined> {
  const { rows } = await vault.store.query<Record<string, number>>({
    text: `select (select count(*)::int from tokenmill.session as s where (s.revoked_at is not null or s.expires_at < now())
    and exists (select from tokenmill.session as n where n.person_id = s.person_id and n.created_at > s.created_at)) as sessions,
  (select count(*)::int from tokenmill.challenge where expires_at < now() - interval '2 minutes') as challenges,
  (select count(*)::int from tokenmill.pending_act where sent_at is null and expires_at < now() - interval '2 minutes') as acts`,
  })
  return rows[0]
}
