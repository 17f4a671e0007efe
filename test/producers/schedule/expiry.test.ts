// Tokens whose expiry date has passed, through scheduler, queue, worker and store.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readSystemKey } from '../../../cli/open/system-clients.ts'
import { type Client, RefusedError } from '../../../producers/client.ts'
import { signAsk } from '../../../producers/envelope.ts'
import { isRefusal } from '../../../src/errors.ts'
import { dateOf, dayAfter } from '../../../src/job/schedule/business-dates.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { openSystemDesk } from '../../support/system-requests.ts'
import { until } from '../../support/until.ts'
import { backdate, EXPIRY, openScheduleFor, runsOf } from './bundle.ts'

const PAGE = 4
const PASSED = 10
/** If a day turns sooner than this, the tests wait until it has turned. */
const MARGIN_MS = 60_000
const today = () => dateOf(Date.now())
/** The last day whose sweep is due, at 00:15: until then the day before. */
const sweptAt = (now: number) => dateOf(now - 15 * 60_000)
let swept: string

describeOnRedis('a token whose date has passed', engine => {
  let installation: Installation
  let client: Client
  const expired: string[] = []
  let lastsToday = ''
  let without = ''
  let deleted = ''
  beforeAll(async () => {
    const isFar = (now: number) => dateOf(now) === dateOf(now + MARGIN_MS) && sweptAt(now) === sweptAt(now + MARGIN_MS)
    await until(() => isFar(Date.now()), { ms: 2 * MARGIN_MS, what: 'a day that lasts' })
    swept = sweptAt(Date.now())
    installation = await openInstallation(engine)
    const workers = await installation.openWorkers({ roles: ['interactive'] })
    client = await installation.connect()
    const ids: string[] = []
    for (let n = 0; n < PASSED + 3; n++) ids.push(await create(n))
    ;[lastsToday = '', without = '', deleted = ''] = ids.splice(PASSED)
    expired.push(...ids)
    for (const [index, id] of expired.entries()) await setDate(id, dayAfter(swept, -1 - (index % 3)))
    await setDate(lastsToday, today())
    await setDate(deleted, dayAfter(swept, -1))
    await client.call('token-lifecycle', { id: deleted, action: 'DELETE' })
    await workers.close()
  })
  afterAll(() => installation?.close())

  async function create(n: number): Promise<string> {
    const card = { cardNumber: luhn(`411111111111${String(n).padStart(3, '0')}`), expiryMonth: 12, expiryYear: 2040 }
    const encrypted = await client.encryptCard(card)
    const made = await client.call('token-create', { token_scope: installation.scope, ...encrypted })
    return String(made.record?.['reuse_token'])
  }
  /** Sets a date in the store, because no request may give a date that has passed. */
  const setDate = (id: string, date: string) =>
    installation.vault.store.query({
      text: 'update tokenmill.token set token_expiry_date = $2 where token_id = $1',
      values: [parseReuseToken(id), date],
    })
  const standing = async (id: string) => {
    const { rows } = await installation.vault.store.query<{ status: string; reason: string | null; receipt: string }>({
      text: 'select status, suspended_reason as reason, last_receipt as receipt from tokenmill.token where token_id = $1',
      values: [parseReuseToken(id)],
    })
    return `${rows[0]?.status} ${rows[0]?.reason}`
  }
  /** Sends a job that is signed with the key of a system client, or of the client. */
  async function ask(name: 'gateway' | 'scheduler' | undefined, request: Record<string, unknown>, jti = randomUUID()) {
    const { credentials, dataDir, queues } = installation
    const signingKey = name ? await readSystemKey(dataDir, name) : credentials.signingKey
    const onBehalfOf = name ? credentials.signingKey.clientId : undefined
    const signed = await signAsk(
      { ...credentials, signingKey, onBehalfOf },
      { kind: 'token-lifecycle', request },
      { jti },
      Date.now(),
    )
    if (isRefusal(signed)) throw new Error(signed.reason)
    await queues.add('token-lifecycle', { id: signed.id, data: signed.data })
    return jti
  }

  it('is suspended by the night’s sweep, a page at a time, and no other token is', async () => {
    await backdate(installation, EXPIRY, 30)
    const schedule = await openScheduleFor(installation, { settings: { sweepPage: PAGE } })
    // However many there are, the queue holds one page.
    await until(async () => (await installation.queues.depth('token-lifecycle')).waiting === PAGE)
    await schedule.dispatchNow()
    expect((await installation.queues.depth('token-lifecycle')).waiting).toBe(PAGE)
    expect(await runsOf(installation, EXPIRY)).toMatchObject([{ state: 'QUEUED', tokens: null }])
    const second = await openScheduleFor(installation, { settings: { sweepPage: PAGE } })
    await installation.openWorkers({ roles: ['interactive'] })
    const [run] = await until(
      async () => {
        const found = await runsOf(installation, EXPIRY)
        return found[0]?.endedAt && found
      },
      { what: 'the end of the sweep' },
    )
    const businessDate = dayAfter(swept, -1)
    expect(run).toMatchObject({ state: 'SUCCEEDED', tokens: PASSED, businessDate, reason: null })
    expect(await Promise.all(expired.map(standing))).toEqual(expired.map(() => 'SUSPENDED EXPIRED'))
    expect(await Promise.all([lastsToday, without, deleted].map(standing))).toEqual([
      'ACTIVE null',
      'ACTIVE null',
      'DELETED null',
    ])
    await until(async () => Object.values(await installation.queues.depth('results-scheduler')).every(n => n === 0))
    const { rows } = await installation.vault.store.query<{ n: number; images: number }>({
      text: `select count(*) as n, (select count(*) from tokenmill.before_image) as images from tokenmill.receipt where client_id = 'scheduler'`,
    })
    expect(rows[0]).toEqual({ n: PASSED, images: 0 })
    await schedule.close()
    await second.close()
  })

  it('comes back with a date that has not passed, and only by one', async () => {
    const [id = '', other = ''] = expired
    expect(await client.call('token-update', { id, token_expiry_date: dayAfter(today(), 30) })).toMatchObject({
      record: { token_status: 'ACTIVE' },
    })
    expect(await client.call('token-update', { id: other, card_holder_name: 'ANNA' })).toMatchObject({
      record: { token_status: 'SUSPENDED' },
    })
  })

  it('is nobody’s but the scheduler’s to end: the word is unknown to all others, and it is the scheduler’s only one', async () => {
    const id = without
    await expect(client.call('token-lifecycle', { id, action: 'EXPIRE' })).rejects.toBeInstanceOf(RefusedError)
    const unknown = {
      code: 400,
      error: { details: { 'body.action': { code: 'field_value' } } },
    }
    const answers: Record<string, unknown>[] = []
    client.results(delivery => {
      if (delivery.type === 'result') answers.push(delivery)
    })
    const own = await ask(undefined, { id, action: 'EXPIRE' })
    const answer = await until(() => answers.find(({ jti }) => jti === own))
    expect(answer).toMatchObject(unknown)
    const gateway = await openSystemDesk(installation, 'gateway')
    expect(await gateway.ask('token-lifecycle', { id, action: 'EXPIRE' })).toMatchObject(unknown)
    await gateway.close()
    const scheduler = await openSystemDesk(installation, 'scheduler')
    for (const action of ['SUSPEND', 'ACTIVATE', 'DELETE'])
      expect(await scheduler.ask('token-lifecycle', { id, action })).toMatchObject(unknown)
    // The date may have been changed to a later one since the scheduler looked.
    expect(await scheduler.ask('token-lifecycle', { id: lastsToday, action: 'EXPIRE' })).toMatchObject({
      code: 204,
      record: { token_status: 'ACTIVE' },
    })
    expect(await scheduler.ask('token-lifecycle', { id: deleted, action: 'EXPIRE' })).toMatchObject({ code: 404 })
    await scheduler.close()
    expect(await standing(without)).toBe('ACTIVE null')
  })
})

function luhn(digits: string): string {
  const sum = [...digits]
    .reverse()
    .map((digit, index) => (index % 2 === 0 ? Number(digit) * 2 : Number(digit)))
    .reduce((all, n) => all + (n > 9 ? n - 9 : n), 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
}
