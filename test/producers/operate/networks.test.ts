// A network that answers 429 is named by `status` within seconds: a real simulator grants less than the scheme file says.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeScope } from '../../../cli/open/make-scope.ts'
import type { Check } from '../../../producers/operate/check.ts'
import type { Status } from '../../../producers/operate/status.ts'
import { cli } from '../../cli/command-bench.ts'
import { numberedPan } from '../../scheme/bundle.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { type Networked, openNetworked } from '../../workers/provider/bundle-network.ts'
import { type Caller, openGatewayFor } from '../gateway/bundle.ts'

describeStore('status of a network', engine => {
  let networked: Networked
  let gateway: Caller
  beforeAll(async () => {
    networked = await openNetworked(engine, { rate: 1, mdes: { ratePerSecond: 200 } })
    await networked.installation.openWorkers({ roles: ['interactive'] })
    gateway = await openGatewayFor(networked.installation)
  })
  afterAll(async () => {
    await gateway?.close()
    await networked?.close()
  })

  async function look(): Promise<Check | undefined> {
    const said = await cli(['status', '--json'], { env: networked.installation.env })
    return said.json<Status>().checks.find(({ name }) => name === 'networks')
  }

  it('names one that answers 429, the rate that is left of the configured one, and since when', async () => {
    expect(await look()).toEqual({ name: 'networks', state: 'well', says: 'no provider slows calls' })
    const { tokenScope } = await makeScope(networked.installation.vault, {
      entityId: ENTITY,
      par: true,
      networkTokens: true,
      autoProvision: true,
      requestor: 'MERCHANT',
      binDigits: 8,
    })
    const put = (n: number) =>
      gateway.put({ cardNumber: numberedPan(n), expiryMonth: 12, expiryYear: 2031 }, { token_scope: tokenScope })
    await Promise.all([1, 2, 3, 4].map(put))
    await until(async () => ((await networked.simulator.stats()).counts['throttled'] ?? 0) > 0, { what: 'a 429' })
    await until(async () => (await look())?.state === 'warning', { what: 'the network is named' })
    expect(await look()).toMatchObject({
      says: expect.stringMatching(/^mdes answers 429: [\d.]+ of 200 calls a second now, for \d+ m?s$/),
      next: expect.stringContaining('lower ratePerSecond in the scheme file'),
    })
  })

  it('says nothing of rows without a rate, nor of a process that is gone', async () => {
    const { store } = networked.installation.vault
    await store.query({
      text: `insert into tokenmill.scheme_rate (provider, process, interactive, wanted_interactive, wanted_bulk, given, beat,
  granted, rate, slowed_by, slowed_at, renewed_at)
values ('old', gen_random_uuid(), true, 0, 0, 0, 1, null, null, null, null, null),
  ('gone', gen_random_uuid(), true, 0, 0, 0, 1, 200, 2, 'throttled', now() - interval '1 hour', now() - interval '1 minute'),
  ('held', gen_random_uuid(), true, 0, 0, 0, 1, 50, 50, 'breaker_open', now() - interval '5 minutes', now())`,
    })
    const said = await look()
    expect(said?.says).toContain('held gives no answers or 5xx, and calls to it are held back')
    expect(said?.says).not.toMatch(/old|gone/)
  })
})
