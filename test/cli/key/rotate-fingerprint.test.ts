// `tokenmill key rotate fingerprint` and `key retire`: while jobs run, after a kill, and with tokens that keep no
// number.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../../producers/client.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import { runCommand } from '../../support/command.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { openSystemDesk } from '../../support/system-requests.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'
import { insertTokens } from '../../workers/reseal/tokens.ts'

const TOKENS = 1_200

describeOnRedis('the fingerprint key', engine => {
  let installation: Installation
  let client: Client
  let reversed: unknown
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await insertTokens(installation.vault.store, installation.vault.ring, installation.scope, TOKENS)
    client = await installation.connect()
    await installation.openWorkers()
  })
  afterAll(() => installation?.close())

  const key = (...words: string[]) => runCommand(['key', ...words], { env: installation.env })
  const rows = async <R>(text: string) => (await installation.vault.store.query<R>({ text })).rows
  const cards = () =>
    rows<{ version: number; rows: number }>(
      'select version, count(*) as rows from tokenmill.card group by 1 order by 1',
    )
  const put = async (index: number, more = {}) => {
    const card = await client.encryptCard({ cardNumber: testPan(index), expiryMonth: 12, expiryYear: 2031 })
    const { record } = await client.call('token-create', { token_scope: installation.scope, ...card, ...more })
    return record?.['reuse_token'] ?? record?.['analytics_token']
  }

  it('turns beside jobs, and each card keeps its token; a run that was killed goes on', async () => {
    // A token without a row in the directory of cards gets one again.
    await rows(`delete from tokenmill.card where token_id =
(select token_id from tokenmill.token where last_four <> '${testPan(0).slice(-4)}' limit 1)`)
    const first = await put(TOKENS)
    const analytics = await put(TOKENS + 1, { token_type: 'ANALYTICS' })
    reversed = await put(TOKENS + 3, { token_type: 'ANALYTICS' })
    const killed = startCommand(['key', 'rotate', 'fingerprint'], { env: installation.env })
    await killed.line(/Cards are written under fingerprint\/2, too/, { stream: 'stderr' })
    await killed.kill9()
    const beside = await Promise.all([put(0), put(TOKENS + 2), put(TOKENS)])
    expect(beside[2]).toBe(first)
    const { code, stdout, stderr } = await key('rotate', 'fingerprint')
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('fingerprint/2 is in use') })
    expect(stdout).toContain('fingerprint/2 stands alone. Tokens without a number are still found under fingerprint/1')
    expect((await installation.vault.lives.read()).phase).toMatchObject({
      phase: 'SINGLE',
      writes: [2],
      looks: [2, 1],
    })
    expect(await cards()).toEqual([
      { version: 1, rows: 2 },
      { version: 2, rows: TOKENS + 2 },
    ])
    const states = (await dataKeys.list(installation.vault.store)).filter(({ purpose }) => purpose === 'fingerprint')
    expect(states.map(({ version, state }) => `${version} ${state}`)).toEqual(['1 DECRYPT_ONLY', '2 ACTIVE'])
    expect(await Promise.all([put(0), put(TOKENS + 2), put(TOKENS)])).toEqual(beside)
    const refused = await key('retire', 'fingerprint', '1')
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/ANALYTICS .*\n.*second tokens/) })
    expect(await put(TOKENS + 1, { token_type: 'ANALYTICS' })).toBe(analytics)
  })

  it('lets a reversal take back what a job changed beside the fingerprint of a token that keeps no number', async () => {
    const desk = await openSystemDesk(installation, 'gateway')
    try {
      const stored = () =>
        rows<{ token: string; year: number; version: number }>(
          `select t.analytics_token as token, t.expiry_year as year, c.version from tokenmill.token as t
join tokenmill.card as c using (token_id) where t.analytics_token = '${reversed}'`,
        )
      expect(await stored()).toEqual([{ token: reversed, year: 2031, version: 1 }])
      const card = await client.encryptCard({ cardNumber: testPan(TOKENS + 3), expiryMonth: 12, expiryYear: 2032 })
      const ask = { token_scope: installation.scope, token_type: 'ANALYTICS', ...card }
      const sent = await desk.send('token-create', ask)
      expect(await desk.answer(sent)).toMatchObject({ code: 200, record: { analytics_token: reversed } })
      expect(await stored()).toEqual([{ token: reversed, year: 2032, version: 2 }])
      expect(await desk.reverse(sent)).toBe('COMPLETED')
      expect(await stored()).toEqual([{ token: reversed, year: 2031, version: 2 }])
      expect(await put(TOKENS + 3, { token_type: 'ANALYTICS' })).toBe(reversed)
    } finally {
      await desk.close()
    }
  })

  it('retires a former version once the cards of its tokens were presented', async () => {
    await until(async () => (await cards()).length === 1)
    const retired = await key('retire', 'fingerprint', '1')
    expect(retired).toMatchObject({ code: 0, stdout: expect.stringContaining('fingerprint/1 any more') })
    expect((await installation.vault.lives.read()).phase).toMatchObject({ phase: 'SINGLE', looks: [2] })
    expect(await key('retire', 'fingerprint', '1')).toMatchObject({ code: 1 })
    expect(await key('retire', 'fingerprint', '2')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('in use'),
    })
    const audited = await rows<{ detail: { step?: string } }>(
      `select detail from tokenmill.audit where action in ('data-key.rotate', 'data-key.retire') and outcome = 'done' order by audit_id`,
    )
    expect(audited.map(({ detail }) => detail.step)).toEqual(['begin', 'BOTH', 'NEW', 'SINGLE', undefined])
  })
})
