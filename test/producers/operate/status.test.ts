// Each fault is really caused; `status` names it and exits with its status.
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askAll, type Check, type State, worstOf } from '../../../producers/operate/check.ts'
import { askCertificate, askDisk } from '../../../producers/operate/checks/files.ts'
import { judgeBacklog } from '../../../producers/operate/checks/work.ts'
import type { Status } from '../../../producers/operate/status.ts'
import { FAILED_QUEUE, resultsQueue } from '../../../src/job/catalogue.ts'
import { makeCertificate } from '../../../src/simulate/scheme/certificate.ts'
import { BEAT, startBeat } from '../../../src/store/access/beat.ts'
import * as clients from '../../../src/store/access/clients.ts'
import * as processes from '../../../src/store/access/processes.ts'
import * as outbox from '../../../src/store/job/outbox.ts'
import * as scheduleRuns from '../../../src/store/report/schedule-runs.ts'
import * as schedules from '../../../src/store/report/schedules.ts'
import { readVersion } from '../../../src/version.ts'
import type { Supervised } from '../../../workers/process/supervise.ts'
import { cli } from '../../cli/command-bench.ts'
import { forge, otherKey, put } from '../../security/forge.ts'
import { CODER } from '../../store/coder.ts'
import { describeEngines } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { freePort } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const EXITS: Record<State, number> = { well: 0, warning: 1, critical: 2, unknown: 2 }

describeEngines('status', engine => {
  let installation: Installation
  let workers: Supervised
  let leaveScheduler: () => Promise<void>
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(async () => {
    await leaveScheduler?.()
    await installation?.close()
  })

  async function look(env: Record<string, string> = {}): Promise<Status & { named: Record<string, Check> }> {
    const said = await cli(['status', '--json'], { env: { ...installation.env, ...env } })
    const status = said.json<Status>()
    expect(said.status).toBe(EXITS[status.state])
    expect(status.state).toBe(worstOf(status.checks))
    return { ...status, named: Object.fromEntries(status.checks.map(check => [check.name, check])) }
  }

  /** Inserts a schedule with a run that was due an hour ago. */
  async function lateRun() {
    const { store } = installation.vault
    const schedule = { scheduleId: randomUUID(), clientId: installation.credentials.signingKey.clientId }
    await schedules.insert(store, {
      ...schedule,
      reportType: 'TOKEN_ACTIVITY_REPORT',
      entityId: ENTITY,
      mimeType: 'text/csv',
      parameters: {},
      time: '03:00',
      zone: 'UTC',
    })
    const run = { scheduleId: schedule.scheduleId, businessDate: '2026-01-02', entityId: ENTITY }
    await scheduleRuns.insert(store, [{ ...run, receiptId: randomUUID(), dueAt: Date.now() - 3_600_000 }])
    return run
  }

  it('is critical while no worker and no scheduler lives', async () => {
    const { state, named, processes } = await look()
    expect(state).toBe('critical')
    expect(named['workers']).toMatchObject({ state: 'critical', says: 'no worker process lives' })
    expect(named['scheduler']).toMatchObject({ state: 'critical' })
    expect(named['store']).toMatchObject({ state: 'well' })
    expect(processes).toEqual([])
  })

  it('is well where everything runs, and lists each process', async () => {
    const { store } = installation.vault
    workers = await installation.startWorkers()
    leaveScheduler = await startBeat({ store, log: installation.session.log }, { role: 'scheduler' })
    const isWell = async () => {
      const status = await look()
      return status.state === 'well' && status
    }
    const { checks, processes } = await until(isWell, { what: 'status well' })
    expect(checks.filter(({ state }) => state !== 'well')).toEqual([])
    expect(processes.map(({ role }) => role)).toEqual(['bulk', 'interactive', 'scheduler'])
    expect(processes[1]).toMatchObject({
      version: readVersion(),
      alive: true,
      kinds: expect.arrayContaining(['reversal']),
    })
    const said = await cli(['status'], { env: installation.env })
    // On a busy machine some checks take longer, and the command says which.
    expect(said).toMatchObject({ status: 0, stderr: expect.stringMatching(/^(tokenmill: these take longer: .*\n)?$/) })
    expect(said.stdout).toMatch(/^store +well +PostgreSQL answered in \d+ m?s and takes writes$/m)
  })

  it('warns of a process that died and of releases that differ, until another takes its place', async () => {
    const { store } = installation.vault
    const known = { host: 'far', version: '0.0.1', kinds: [], features: [], keys: [], connections: 1 } as const
    const processId = randomUUID()
    await processes.see(store, { ...known, processId, role: 'gateway' })
    expect((await look()).named['processes']).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/of releases 0\.0\.1, .*: gateway on far runs 0\.0\.1$/),
    })
    const silence = (ms: number) =>
      store.query({
        text: `update tokenmill.process set seen_at = now() - make_interval(secs => $2), started_at = now() - interval '1 hour'
where process_id = $1`,
        values: [processId, ms / 1000],
      })
    // A process that has been silent for this long is named, although it counts as dead only later.
    await silence(BEAT.lateMs + 1_000)
    const late = await look()
    expect(late.named['processes']).toMatchObject({ says: expect.stringMatching(/gateway on far \((1[1-9]|2\d) s/) })
    expect(late.processes.find(({ host }) => host === 'far')).toMatchObject({ alive: true })
    await silence(BEAT.deadMs + 5_000)
    const { named, processes: listed } = await look()
    expect(named['processes']).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/gateway on far \((3[5-9]|[4-9]\d) s/),
    })
    expect(listed.find(({ host }) => host === 'far')).toMatchObject({ alive: false })
    const next = randomUUID()
    await processes.see(store, { ...known, version: readVersion(), processId: next, role: 'gateway' })
    expect((await look()).named['processes']).toMatchObject({ state: 'well' })
    await processes.leave(store, { processId: next, role: 'gateway' })
    await processes.leave(store, { processId, role: 'gateway' })
    expect((await look()).state).toBe('well')
  })

  it('shows the name of a host as no terminal obeys it', async () => {
    const { store } = installation.vault
    const host = 'far\u001b]0;owned\u0007\nnear  worker\u202e\u009b2J'
    const known = { host, version: readVersion(), kinds: [], features: [], keys: [], connections: 1 } as const
    const processId = randomUUID()
    await processes.see(store, { ...known, processId, role: 'gateway' })
    const { processes: listed } = await look()
    expect(listed.map(each => each.host)).toContain(host)
    const { stdout } = await cli(['status'], { env: installation.env })
    await processes.leave(store, { processId, role: 'gateway' })
    expect(stdout).toMatch(/^far\\u\{1b\}\]0;owned\\u\{7\}\\u\{a\}near {2}worker\\u\{202e\}\\u\{9b\}2J +gateway /m)
    expect(stdout).not.toMatch(/(?!\n)\p{C}/u)
  })

  it('warns of failed jobs', async () => {
    const { queues } = installation
    await queues.add(FAILED_QUEUE('token-update'), { id: 'f_1', data: {} })
    expect((await look()).named['failed jobs']).toMatchObject({
      state: 'warning',
      says: 'jobs that failed for good: token-update 1',
    })
    await queues.remove(FAILED_QUEUE('token-update'), 'f_1')
  })

  it('warns of a batch that stalled, and says why', async () => {
    const { store } = installation.vault
    const { clientId } = installation.credentials.signingKey
    await store.query({
      text: `insert into tokenmill.batch (client_id, batch_id, record_kind, token_scope, chunk_records, layout, accepted_at, extent_chunks, extent_rows, active_at)
values ($1, 'stalls', 'token-create', $2, 10, '{}', now(), 2, 20, now() - interval '2 minutes')`,
      values: [clientId, installation.scope],
    })
    expect((await look()).named['batches']).toMatchObject({
      state: 'warning',
      // On a machine with a load on it, the load is named as well.
      says: expect.stringMatching(/^1 STALLED; stalls: nobody sends: none of its chunks is in the queue/),
    })
    const copy = {
      jws: 'x',
      block: 'y',
      kind: 'token-batch',
      code: 'store_busy',
      attempt: 8,
      failedAt: Date.now(),
    }
    const [ours, others] = ['o', 'x'].map(letter => `f_${letter.repeat(43)}`) as [string, string]
    await installation.queues.addBulk(FAILED_QUEUE('token-batch'), [
      { id: ours, data: { ...copy, jobId: 'j_1', clientId, jti: 'stalls-1' } },
      { id: others, data: { ...copy, jobId: 'j_2', clientId, jti: 'another-1' } },
      // No worker makes such an id.
      { id: 'f_1', data: { ...copy, jobId: 'j_3', clientId, jti: 'stalls-0' } },
    ])
    const failed = `the failed set has 1 copy that names it (store_busy); \`tokenmill failed retry ${ours}\` sends it again`
    expect((await look()).named['batches']).toMatchObject({
      says: expect.stringContaining(`1 STALLED; stalls: ${failed}`),
    })
    const shown = await cli(['batch', 'show', 'stalls', '--json'], { env: installation.env })
    expect(shown.json()).toMatchObject({ why: failed })
    await installation.queues.obliterate(FAILED_QUEUE('token-batch'))
    await store.query({
      text: 'update tokenmill.client set revoked_at = now() where client_id = $1',
      values: [clientId],
    })
    expect((await look()).named['batches']).toMatchObject({
      says: expect.stringContaining('stalls: its client is revoked'),
      next: expect.stringContaining('tokenmill batch cancel'),
    })
    await store.query({
      text: 'update tokenmill.client set revoked_at = null where client_id = $1',
      values: [clientId],
    })
    await store.query({ text: `update tokenmill.batch set active_at = now() where batch_id = 'stalls'` })
    expect((await look()).named['batches']).toMatchObject({ state: 'well', says: '1 open batch: 1 RUNNING' })
  })

  it('warns of a client that does not read its results, by its name', async () => {
    const { store } = installation.vault
    const { clientId } = installation.credentials.signingKey
    const jobs = Array.from({ length: 990 }, (_, n) => ({ id: `r_${n}`, data: {} }))
    await installation.queues.addBulk(resultsQueue(clientId), jobs)
    const row = { clientId, replyTo: null, resultId: randomUUID(), receiptId: randomUUID(), revision: 1, body: '{}' }
    await outbox.insert(store, CODER, row)
    await store.query({ text: `update tokenmill.outbox set created_at = now() - interval '2 minutes'` })
    const { named } = await look()
    expect(named['outbox']).toMatchObject({
      state: 'warning',
      says: '1 result unpublished, the oldest for 2 min; first: 1 result, 990 more unread',
      next: expect.stringContaining('read their results queues'),
    })
    await installation.queues.obliterate(resultsQueue(clientId))
    await store.query({ text: `update tokenmill.outbox set state = 'SENT'` })
  })

  it('names the client that dropped envelopes claim to be from, and that the claim is not proved', async () => {
    const { queues, credentials } = installation
    const forged = { key: otherKey() }
    await put(queues, 'token-lifecycle', { jws: forge(credentials, forged) })
    const stranger = { ...forged, claims: { iss: `c${'x'.repeat(25)}` } }
    await put(queues, 'token-lifecycle', { jws: forge(credentials, stranger) })
    const says = async () => (await look()).named['envelopes']?.says ?? ''
    await until(async () => (await says()).startsWith('2 envelopes'), { what: 'dropped envelopes' })
    const { named } = await look()
    expect(named['envelopes']).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(
        /^2 envelopes dropped, the last \d+ m?s ago; by what they claim, which nobody has proved: no known client: 1 \(unknown_client\), first: 1 \(signature\)$/,
      ),
      next: expect.stringContaining('somebody else can write to the queue server'),
    })
  })

  it('says how many jobs wait and for how long, by kind', async () => {
    await workers.close()
    await installation.queues.add('token-lifecycle', { id: 'w_1', data: {} })
    const { named } = await look()
    expect(named['workers']).toMatchObject({ state: 'critical' })
    expect(named['backlog']).toMatchObject({ says: expect.stringMatching(/^token-lifecycle 1 \(oldest \d+ m?s\)/) })
    await installation.queues.remove('token-lifecycle', 'w_1')
  })

  it('names a store that refuses or hangs within seconds, and so a queue server', async () => {
    const silent = await openSilent()
    const asked = [await freePort(), silent.port].flatMap(port => [
      { env: { DATABASE_URL: `postgres://u:p@127.0.0.1:${port}/d` }, name: 'store' },
      ...(engine.redisUrls ? [{ env: { REDIS_URL: `redis://127.0.0.1:${port}` }, name: 'queues' }] : []),
    ])
    for (const { env, name } of asked) {
      // Two seconds; five on a host that is too busy to run it (docs/on-call.md). The quickest counts.
      const { named } = await until(async () => {
        const began = performance.now()
        const looked = await look(env)
        return performance.now() - began < 5_000 && looked
      })
      expect(named[name]).toMatchObject({ state: 'critical', says: expect.stringContaining('is away') })
      if (name === 'queues') expect(named['store']).toMatchObject({ state: 'well' })
    }
    silent.close()
  })

  // The queue plays no part in the other tests, so they run on one engine.
  if (engine.name === 'redis') return

  it('is critical where the KEK file is absent or another one', async () => {
    const { dataDir } = installation
    expect((await look({ TOKENMILL_KEK_FILE: join(dataDir, 'no-kek') })).named['vault keys']).toMatchObject({
      state: 'critical',
      says: expect.stringContaining('ENOENT'),
    })
    const other = join(dataDir, 'other-kek')
    await writeFile(other, `tokenmill-kek-v1\n${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 })
    expect((await look({ TOKENMILL_KEK_FILE: other })).named['vault keys']).toMatchObject({ state: 'critical' })
  })

  it('is critical where a schedule is late or its run failed', async () => {
    const { store } = installation.vault
    const run = await lateRun()
    expect((await look()).named['schedules']).toMatchObject({
      state: 'critical',
      says: `2026-01-02 of ${run.scheduleId} is late by 60 min`,
    })
    await scheduleRuns.fail(store, run, 'role_missing')
    expect((await look()).named['schedules']?.says).toContain('failed (role_missing)')
    await store.query({ text: `update tokenmill.schedule_run set ended_at = now() - interval '25 hours'` })
    expect((await look()).named['schedules']).toMatchObject({ state: 'well' })
    await store.query({ text: `update tokenmill.schedule_run set ended_at = now()` })
    expect((await look()).named['schedules']).toMatchObject({ state: 'critical' })
    const later = { ...run, businessDate: '2026-01-03', receiptId: randomUUID() }
    await scheduleRuns.insert(store, [{ ...later, dueAt: Date.now() }])
    await scheduleRuns.applyAnswer(store, later.receiptId, { state: 'SUCCEEDED', reportUid: null })
    expect((await look()).named['schedules']).toMatchObject({ state: 'well' })
  })

  it('says nothing more of a schedule that was removed after its run had failed', async () => {
    const { store } = installation.vault
    const run = await lateRun()
    await scheduleRuns.fail(store, run, 'role_missing')
    expect((await look()).named['schedules']?.says).toContain(`of ${run.scheduleId} failed (role_missing)`)
    const said = await cli(['schedule', 'remove', run.scheduleId], { env: installation.env })
    expect(said.status).toBe(0)
    expect((await look()).named['schedules']).toMatchObject({ state: 'well' })
  })

  it('is critical where a night is due and no scheduler began it', async () => {
    const { store } = installation.vault
    const schedule = { scheduleId: randomUUID(), clientId: installation.credentials.signingKey.clientId }
    const since = Date.now() - 3 * 86_400_000
    await schedules.insert(store, {
      ...schedule,
      reportType: 'TOKEN_ACTIVITY_REPORT',
      entityId: ENTITY,
      mimeType: 'text/csv',
      parameters: {},
      time: '00:00',
      zone: 'UTC',
      since,
    })
    expect((await look()).named['schedules']).toMatchObject({
      state: 'critical',
      says: expect.stringMatching(new RegExp(`of ${schedule.scheduleId} is late by .*: no scheduler began it`)),
    })
    await schedules.remove(store, schedule.scheduleId)
    expect((await look()).named['schedules']).toMatchObject({ state: 'well' })
  })

  it('warns of a client whose last signing key ends soon', async () => {
    const { store } = installation.vault
    const { credentials } = await installation.addClient('ending')
    const { clientId, kid } = credentials.signingKey
    await clients.retireKey(store, clientId, kid, Date.now() + 3 * 86_400_000)
    expect((await look()).named['keys']).toMatchObject({
      state: 'warning',
      says: expect.stringContaining('the last signing key of ending ends in 3 days'),
    })
    await clients.revoke(store, clientId)
    expect((await look()).named['keys']).toMatchObject({ state: 'well' })
  })

  it('prints what was answered first, and then a check that takes longer', async () => {
    const { store } = installation.vault
    await store.transaction(async db => {
      await db.query({ text: 'lock table tokenmill.dropped_envelope in access exclusive mode' })
      let child = startCommand(['status'], { env: installation.env })
      // A command whose whole time was over before it asked twice says so, and is no proof.
      while (!(await hasAskedTwice(child))) child = startCommand(['status'], { env: installation.env })
      expect(child.stdout()).not.toMatch(/^envelopes/m)
      expect((await child.exit).code).toBe(2)
      expect(child.stdout()).toMatch(/^envelopes +unknown +no answer within 4 s$/m)
    })
  })

  it('ends as a process although a server hangs', async () => {
    const silent = await openSilent()
    const child = startCommand(['status'], {
      env: { ...installation.env, DATABASE_URL: `postgres://u:p@127.0.0.1:${silent.port}/d` },
    })
    await child.line(/the store is away/)
    const began = performance.now()
    expect((await child.exit).code).toBe(2)
    // The connection would be tried for twenty seconds, but the command doesn't wait for it.
    expect(performance.now() - began).toBeLessThan(19_000)
    expect(child.stdout()).toContain('the store is away')
    expect(child.stderr()).toContain('tokenmill: critical: store')
    silent.close()
  })
})

/** Resolves when the command has said which checks take longer. False: it ended, because this host ran it too slowly. */
async function hasAskedTwice(child: ReturnType<typeof startCommand>): Promise<boolean> {
  try {
    await child.line(/these take longer: .*\benvelopes\b/, { stream: 'stderr' })
    return true
  } catch (error) {
    if (/no answer within 1 s$/m.test(child.stdout())) return false
    throw error
  }
}

describe('a check', () => {
  it('that throws or hangs is an answer, and keeps no other', async () => {
    const lastMs = 60_000
    const began = performance.now()
    const checks = await askAll(
      [
        { name: 'hangs', ask: () => new Promise<never>(() => {}) },
        { name: 'throws', ask: () => Promise.reject(new Error('a secret')) },
        { name: 'hanging server', ask: () => new Promise<never>(() => {}), server: 'the store' },
        { name: 'answers', ask: async () => ({ state: 'well' as const, says: 'yes' }) },
      ],
      {},
      { firstMs: 50, lastMs },
    )
    expect(performance.now() - began).toBeLessThan(lastMs)
    expect(checks.map(({ state }) => state)).toEqual(['unknown', 'unknown', 'critical', 'well'])
    expect(JSON.stringify(checks)).not.toContain('secret')
    expect(worstOf(checks)).toBe('critical')
  })

  it('that is slow has more time where the servers answer, and those that answered are told first', async () => {
    const first = Promise.withResolvers<{ state: 'well'; says: string }>()
    const told: unknown[] = []
    const checks = await askAll(
      [
        { name: 'slow', ask: () => first.promise },
        { name: 'too slow', ask: () => new Promise<never>(() => {}) },
        { name: 'server', ask: async () => ({ state: 'well' as const, says: 'yes' }), server: 'the store' },
      ],
      {},
      {
        firstMs: 50,
        lastMs: 150,
        onFirst: (answered, awaited) => {
          told.push(
            answered.map(({ name }) => name),
            awaited,
          )
          first.resolve({ state: 'well', says: 'at last' })
        },
      },
    )
    expect(told).toEqual([['server'], ['slow', 'too slow']])
    expect(checks.map(({ name, says }) => [name, says])).toEqual([
      ['slow', 'at last'],
      ['too slow', 'no answer within 0.15 s'],
      ['server', 'yes'],
    ])
  })

  it('is not held to be late where this process itself could not run', async () => {
    const busy = async () => {
      await setImmediate()
      const until = performance.now() + 400
      while (performance.now() < until);
      await setImmediate()
      return { state: 'well' as const, says: 'yes' }
    }
    const [check] = await askAll(
      [{ name: 'store', ask: busy, server: 'the store' }],
      {},
      { firstMs: 300, lastMs: 2_000 },
    )
    expect(check).toEqual({ name: 'store', state: 'well', says: 'yes' })
  })

  it('of the backlog is critical where an interactive job waits for more than a minute, and patient with bulk', () => {
    const of = (kind: 'token-update' | 'token-batch', seconds: number) =>
      judgeBacklog([{ kind, urgent: kind === 'token-update', waiting: 2_000, active: 1, oldestMs: seconds * 1_000 }])
    expect(of('token-update', 61)).toMatchObject({
      state: 'critical',
      says: 'token-update 2,000 (oldest 61 s); 1 job in work',
    })
    expect([of('token-update', 11), of('token-update', 9)].map(({ state }) => state)).toEqual(['warning', 'well'])
    expect([of('token-batch', 3_601), of('token-batch', 600)].map(({ state }) => state)).toEqual(['warning', 'well'])
  })

  const none = { store: () => Promise.reject(new Error()), now: Date.now(), reportsUrl: undefined, tls: undefined }

  it('of a certificate says when it ends', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'tokenmill-certificate-'))
    const certFile = join(dir, 'cert.pem')
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const cert = makeCertificate({ ...pair, commonName: 'localhost', now: Date.now(), days: 30 })
    await writeFile(certFile, cert)
    const states = [0, 20, 29, 31].map(async days => {
      const asked = await askCertificate({ ...none, tls: { certFile }, now: Date.now() + days * 86_400_000 })
      return asked.state
    })
    expect(await Promise.all(states)).toEqual(['well', 'warning', 'critical', 'critical'])
    await rm(dir, { recursive: true })
    expect(await askCertificate({ ...none, tls: { certFile } })).toMatchObject({ state: 'critical' })
    expect(await askCertificate(none)).toMatchObject({ state: 'well' })
  })

  it('of the disk names a place that can not be reached or is no folder, and the lack of one', async () => {
    expect(await askDisk({ ...none, reportsUrl: 'file:///dev/null/reports' })).toMatchObject({
      state: 'critical',
      says: expect.stringContaining('ENOTDIR'),
    })
    const file = new URL(import.meta.url)
    expect(await askDisk({ ...none, reportsUrl: file.href })).toMatchObject({
      state: 'critical',
      says: `${fileURLToPath(file)} is not a folder: no report is made`,
    })
    expect(await askDisk(none)).toMatchObject({ state: 'warning' })
  })
})

/** Opens a server that accepts connections and never answers. */
async function openSilent(): Promise<{ port: number; close: () => void }> {
  const sockets: { destroy(): void }[] = []
  const server: Server = createServer(socket => {
    sockets.push(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
