// A gateway on a host whose clock is wrong: it goes by the store's clock and says on which host the clock is off. A write
// that is refused because the clock has just turned wrong names the clock, and the next one is right again.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { describeOnRedis } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { testPan } from '../../../support/test-pan.ts'
import { CARD, type Caller, encrypted, openGatewayFor } from '../bundle.ts'

const MINUTE_MS = 60_000

describeOnRedis('a gateway whose clock is wrong', engine => {
  let installation: Installation
  let caller: Caller
  let aheadMs = 0
  const now = Date.now.bind(Date)
  beforeAll(async () => {
    installation = await openInstallation(engine)
    // Processes of their own, whose clock is right.
    await installation.startWorkers({ roles: ['interactive'] })
    aheadMs = 3 * MINUTE_MS
    vi.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs)
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    vi.restoreAllMocks()
    await caller?.close()
    await installation?.close()
  })

  let pans = 0
  const bodyOf = async () => {
    const captureTime = new Date(now()).toISOString()
    const card = { cardNumber: testPan(++pans), expiryMonth: 12, expiryYear: 2034, captureTime }
    return { token_scope: installation.scope, ...(await encrypted(card, installation.credentials)) }
  }
  const put = (body: unknown, key: string = randomUUID()) =>
    caller.call('PUT', CARD, { body, headers: { 'idempotency-key': key } })
  const secondsOff = async () => {
    const text = await (await fetch(`http://127.0.0.1:${caller.gateway.opsPort}/metrics`)).text()
    return Number(/^tokenmill_clock_skew_seconds\S* (\S+)$/m.exec(text)?.[1])
  }
  const readiness = async () => {
    const answer = await fetch(`http://127.0.0.1:${caller.gateway.opsPort}/readyz`)
    return { status: answer.status, text: await answer.text() }
  }
  const CAUSE = {
    status: 500,
    body: {
      code: 500,
      message: expect.stringMatching(
        /^The clock of the host that serves this request is ahead of the store’s, .*had no effect/,
      ),
      timestamp: expect.any(Number),
      reversal_status: 'NONE',
    },
  }

  it('serves by the store’s clock, and is not ready', async () => {
    expect(await put(await bodyOf())).toMatchObject({ status: 200 })
    expect(await readiness()).toEqual({
      status: 503,
      text: expect.stringMatching(/the clock is 1(79|80|81) s off the store's/),
    })
    expect(await secondsOff()).toBeCloseTo(180, -1)
  })

  // The clock only goes forward here: one that goes back signs in the past, which no worker refuses.
  it.each([
    ['by three minutes', 3],
    ['by an hour', 60],
  ])('names the clock in the answer to a write that a worker refuses for it: it is %s more', async (_, minutes) => {
    aheadMs += minutes * MINUTE_MS
    const key = randomUUID()
    const body = await bodyOf()
    const refused = await put(body, key)
    expect(refused).toMatchObject(CAUSE)
    expect(refused.body).not.toHaveProperty('details')
    // The refusal has it compared at once: the same request takes effect.
    expect(await put(body, key)).toMatchObject({ status: 200 })
    expect(await secondsOff()).toBeCloseTo(aheadMs / 1_000, -1)
    expect((await readiness()).status).toBe(503)
  })

  it('names it for PATCH, too', async () => {
    const { body } = await put(await bodyOf())
    aheadMs += 3 * MINUTE_MS
    const path = `${CARD}/${body['reuse_token']}`
    expect(await caller.call('PATCH', path, { body: { card_holder_name: 'ANNA' } })).toMatchObject(CAUSE)
  })
})
