// The keys by which tokenmill's own processes sign: how they are replaced, and what a process says whose key isn't live.
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { readSystemKey } from '../../cli/open/system-clients.ts'
import { openGatewayMetrics } from '../../producers/gateway/metrics.ts'
import { openRequestReply, type RequestReply } from '../../producers/gateway/request-reply/request-reply.ts'
import { type OwnKey, watchOwnKey } from '../../producers/http/own-key.ts'
import { STOLEN } from '../../src/acts/reversals.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { openRegistry } from '../../src/metrics.ts'
import { failedList, moveToFailed } from '../../src/queue/failed.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as liveKeys from '../../src/store/access/live-keys.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { type Counters, openCounters } from '../security/metrics.ts'
import { runCommand } from '../support/command.ts'
import { describeStore } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { startCommand } from '../support/process.ts'
import { openSystemDesk, type SystemDesk } from '../support/system-requests.ts'
import { testPan } from '../support/test-pan.ts'
import { until } from '../support/until.ts'

describeStore("the keys of tokenmill's own clients", engine => {
  let installation: Installation
  let counters: Counters
  beforeAll(async () => {
    installation = await openInstallation(engine)
    counters = openCounters(await installation.openWorkers())
  })
  const closers: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })
  afterAll(() => installation?.close())

  const run = (...words: string[]) => runCommand(words, { env: installation.env })
  const keys = async (name: string) => {
    const found = await clients.findClientKeys(installation.vault.store, name)
    return found.map(({ kid, state }) => ({ kid, state }))
  }

  /** A gateway's asking, with the key that its host has now. */
  async function openGateway(): Promise<{ gateway: RequestReply; ownKey: OwnKey; kid: string }> {
    const { queues, vault, credentials, dataDir, session } = installation
    const signingKey = await readSystemKey(dataDir, 'gateway')
    const { log } = session
    const ask = () => liveKeys.isLive(vault.store, signingKey)
    const ownKey = await watchOwnKey(signingKey, { ask, log }, 100)
    closers.push(ownKey.stop)
    const gateway = openRequestReply({
      queues,
      store: vault.store,
      clock: Date.now,
      log,
      isKeyLive: ownKey.isLive,
      signingKey,
      trusted: { keys: credentials.installationKeys },
      settings: { audience: credentials.audience, timeoutMs: 120_000, inFlightMax: 100 },
      metrics: openGatewayMetrics(openRegistry({ role: 'test' }), CATALOGUE.kinds),
    })
    closers.push(gateway.close)
    await gateway.ready
    return { gateway, ownKey, kid: signingKey.kid }
  }
  /** Sends what the desk signs until a worker drops it: its key has ended. */
  async function untilDropped(desk: SystemDesk): Promise<void> {
    const drops = () => counters.read('tokenmill_envelopes_refused_total', { reason: 'revoked' })
    const before = await drops()
    await until(async () => {
      await desk.send('token-lifecycle', { id: `r${'b'.repeat(26)}`, action: 'SUSPEND' })
      return (await drops()) > before
    })
  }
  const ask = (gateway: RequestReply) => {
    const { signingKey, userId, entityId } = installation.credentials
    const caller = { client: { clientId: signingKey.clientId }, userId, entityId, roles: ['TOKEN_LIFECYCLE'] } as never
    return gateway.ask(caller, 'token-lifecycle', { id: `r${'a'.repeat(26)}`, action: 'SUSPEND' })
  }

  it.each([
    ['client', 'revoke', 'gateway'],
    ['client', 'names', 'worker', 'numeric'],
    ['client', 'api-key', 'rotate', 'scheduler'],
    ['client', 'key', 'add', 'console'],
    ['client', 'key', 'revoke', 'gateway', 'x'],
    ['client', 'key', 'retire', 'gateway', 'x', '--until', '2030-01-01T00:00:00Z'],
  ])('%s %s of one is refused, and names the command for it', async (...words) => {
    const name = ['gateway', 'worker', 'scheduler', 'console'].find(role => words.includes(role))
    const before = await keys(name ?? '')
    expect(await run(...words)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`\`tokenmill system rotate ${name}\``),
    })
    expect(await keys(name ?? '')).toEqual(before)
  })

  it('rotate hands a new key out, goes on where it was killed, and ends the former one when a worker verified the new', async () => {
    const former = await openGateway()
    expect(await ask(former.gateway)).toMatchObject({ end: 'answered' })
    const killed = startCommand(['system', 'rotate', 'gateway', '--yes'], { env: installation.env })
    await killed.line(/Waiting until a worker has verified/, { stream: 'stderr' })
    await killed.kill9()
    expect((await keys('gateway')).map(({ state }) => state)).toEqual(['ACTIVE', 'ACTIVE'])
    const next = await openGateway()
    expect(next.kid).not.toBe(former.kid)
    // A gateway of another host, which has the former file still.
    expect(await ask(former.gateway)).toMatchObject({ end: 'answered' })
    const rotating = run('system', 'rotate', 'gateway', '--yes', '--json')
    const isDone = rotating.then(() => true)
    await until(async () => (await ask(next.gateway)).end === 'answered')
    const { code, stdout, stderr } = await rotating
    expect(await isDone).toBe(true)
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('was made before; going on with it') })
    expect(JSON.parse(stdout)).toMatchObject({ client_id: 'gateway', kid: next.kid, former_until: expect.any(String) })
    expect(await keys('gateway')).toEqual([
      { kid: former.kid, state: 'RETIRED' },
      { kid: next.kid, state: 'ACTIVE' },
    ])
    expect(await ask(former.gateway)).toMatchObject({ end: 'answered' })
    expect(former.ownKey.isLive()).toBe(true)
  })

  it('rotate --stolen ends the former key at once, and a gateway that has it says so and keeps nobody waiting', async () => {
    const former = await openGateway()
    const stolen = await run('system', 'rotate', 'gateway', '--stolen', '--yes', '--reason', 'the host was broken into')
    expect(stolen).toMatchObject({ code: 0, stderr: expect.stringContaining('no worker has taken is dropped') })
    expect(stolen.stdout).toContain('its former keys are ended')
    expect((await keys('gateway')).filter(({ state }) => state !== 'STOLEN')).toHaveLength(1)
    await until(() => !former.ownKey.isLive())
    expect(await former.ownKey.reasons()).toEqual([
      expect.stringMatching(/^the key of this gateway \(.+\) is not live: .*system rotate gateway/),
    ])
    const began = performance.now()
    expect(await ask(former.gateway)).toEqual({ end: 'late', reversalStatus: 'NONE' })
    // Its time-out is 120 s.
    expect(performance.now() - began).toBeLessThan(60_000)
    const next = await openGateway()
    expect(await ask(next.gateway)).toMatchObject({ end: 'answered' })
    const { rows } = await installation.vault.store.query({
      text: `select detail->>'stolen' as stolen, detail->>'reason' as reason
from tokenmill.audit where action = 'system.key.rotate' order by audit_id desc limit 1`,
    })
    expect(rows).toEqual([{ stolen: 'true', reason: 'the host was broken into' }])
  })

  it('of what a stolen key signed only a reversal from before the theft counts, of what a gateway really asked for', async () => {
    const client = await installation.connect()
    const card = async (index: number) => ({
      token_scope: installation.scope,
      ...(await client.encryptCard({ cardNumber: testPan(index), expiryMonth: 12, expiryYear: 2031 })),
    })
    const desk = await openSystemDesk(installation, 'gateway')
    closers.push(desk.close)
    const [one, two] = [await desk.send('token-create', await card(1)), await desk.send('token-create', await card(2))]
    expect(await desk.answer(one)).toMatchObject({ code: 200 })
    expect(await desk.answer(two)).toMatchObject({ code: 200 })
    const own = await client.submit('token-create', await card(3))
    expect(await client.result(own)).toMatchObject({ code: 200 })
    expect((await run('system', 'rotate', 'gateway', '--stolen', '--yes')).code).toBe(0)
    const stolenAt = Date.now()
    await untilDropped(desk)
    const reverse = ({ receiptId: receipt_id, envelope }: { receiptId: string; envelope: string }, now: number) =>
      desk.send('reversal', { receipt_id, envelope }, { now })
    // As a thief who says that it was signed before.
    const others = await reverse({ receiptId: own.receiptId, envelope: own.envelope }, stolenAt - 60_000)
    expect(await desk.answer(others)).toMatchObject({ status: 'FAILED', code: 400 })
    const unheard = await reverse({ receiptId: randomUUID(), envelope: one.envelope }, stolenAt - 60_000)
    expect(await desk.answer(unheard)).toMatchObject({ status: 'FAILED', code: 400 })
    const early = await reverse(one, stolenAt - 60_000)
    expect(await desk.answer(early)).toMatchObject({ record: { reversal_status: 'COMPLETED' } })
    const late = await reverse(two, stolenAt + 2_000)
    const dropped = async () => (await installation.queues.depth('reversal')).waiting === 0
    await until(dropped)
    expect(await receipts.find(installation.vault.store, two.receiptId)).toMatchObject({ status: 'SUCCEEDED' })
    expect(await receipts.find(installation.vault.store, late.receiptId)).toBeUndefined()
    expect(await receipts.find(installation.vault.store, own.receiptId)).toMatchObject({ status: 'SUCCEEDED' })
    // Of later ones an operator confirms a single one.
    const three = await reverse({ receiptId: own.receiptId, envelope: own.envelope }, stolenAt + 2_000)
    const { clientId } = installation.credentials.signingKey
    const forged = await openSystemDesk(installation, 'gateway')
    closers.push(forged.close)
    const unsigned = forged.sign('reversal', { receipt_id: two.receiptId, envelope: two.envelope })
    const copy = { kind: 'reversal', code: STOLEN, attempt: 1, failedAt: Date.now(), jobId: 'j', clientId }
    await moveToFailed(installation.queues, 'reversal', { id: 'j', enqueuedAt: 1 }, { ...copy, jws: unsigned.jws })
    await until(dropped)
    const listed = JSON.parse((await run('system', 'reversals', '--json')).stdout)
    expect(listed.map((one: { envelope: string }) => one.envelope).sort()).toEqual(
      [late.envelope, unsigned.envelope].sort(),
    )
    expect(listed).toContainEqual(
      expect.objectContaining({
        envelope: late.envelope,
        receipt_id: two.receiptId,
        kind: 'token-create',
        jti: two.jti,
      }),
    )
    const confirm = (envelope: string) => run('system', 'confirm', envelope, '--reason', 'its caller gave it up')
    expect(await confirm(unsigned.envelope)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('No stolen key of this installation signed this reversal'),
    })
    expect(await confirm(three.envelope)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no such reversal'),
    })
    expect(await receipts.find(installation.vault.store, two.receiptId)).toMatchObject({ status: 'SUCCEEDED' })
    // Sent again it is still nobody's: a repeat alone confirms nothing.
    const [kept] = (await failedList(installation.queues, 'reversal')).filter(({ jws }) => jws !== unsigned.jws)
    expect((await run('failed', 'retry', kept?.id ?? '')).code).toBe(0)
    await until(async () => (await failedList(installation.queues, 'reversal')).length === 2)
    expect(await receipts.find(installation.vault.store, two.receiptId)).toMatchObject({ status: 'SUCCEEDED' })
    expect(await confirm(late.envelope)).toMatchObject({ code: 0 })
    await until(async () => (await receipts.find(installation.vault.store, two.receiptId))?.status === 'CANCELLED')
    expect(await failedList(installation.queues, 'reversal')).toHaveLength(1)
    const { rows } = await installation.vault.store.query({
      text: `select subject, detail->>'reason' as reason, detail->>'receipt_id' as receipt
from tokenmill.audit
where action = 'reversal.confirm' and outcome = 'done'`,
    })
    expect(rows).toEqual([{ subject: late.envelope, reason: 'its caller gave it up', receipt: two.receiptId }])
  })

  it.each(['worker', 'scheduler', 'console'] as const)('the key of %s is replaced and ended alike', async name => {
    const [former] = await keys(name)
    const { code } = await run('system', 'rotate', name, '--stolen', '--yes')
    expect(code).toBe(0)
    const now = await keys(name)
    expect(now.find(({ kid }) => kid === former?.kid)?.state).toBe('STOLEN')
    const own = await readSystemKey(installation.dataDir, name)
    expect(now.filter(({ state }) => state === 'ACTIVE')).toEqual([{ kid: own.kid, state: 'ACTIVE' }])
    expect(await liveKeys.isLive(installation.vault.store, own)).toBe(true)
  })
})
