// The listing of orders over HTTP: every answer is checked against the document, and a client doesn't see another
// entity's orders.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as orders from '../../../src/store/ledger/orders.ts'
import { MINE, orderOf, THEIRS, uid } from '../../orders/sample.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { basicOf, type Caller, openGatewayFor } from './bundle.ts'

const ORDERS = '/oidc/orders'
const CREATORS = `${ORDERS}/creators`

describeStore('orders over HTTP', engine => {
  let installation: Installation
  let caller: Caller
  let theirs: string
  let unprivileged: string
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await orders.saveAll(
      installation.vault.store,
      Array.from({ length: 200 }, (_, n) => orderOf(n)),
    )
    caller = await openGatewayFor(installation)
    theirs = await basicOf((await installation.addClient('theirs', { entity: THEIRS })).clientFile)
    unprivileged = await basicOf((await installation.addClient('clerk', { roles: ['TOKEN_READ'] })).clientFile)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  const get = (path: string, query = '', authorization?: string | null) =>
    caller.call('GET', `${path}${query}`, authorization === undefined ? {} : { authorization })
  const listed = (answer: Awaited<ReturnType<typeof get>>) =>
    answer.body['orders'] as { orderId: string; entityUid: string }[]

  it('are declined in the error body of INTERFACE 2.8, with what is wrong under `query.`', async () => {
    const expectNo = async (
      status: number,
      details: Record<string, string>,
      path: string,
      more: [string?, string?],
    ) => {
      const { body, ...answer } = await get(path, more[0], more[1])
      expect(answer.status, `${path}${more[0]}`).toBe(status)
      const { message, timestamp, details: given = {}, ...rest } = body
      expect(rest).toEqual({ code: status, reversal_status: 'NONE' })
      expect([typeof message, typeof timestamp]).toEqual(['string', 'number'])
      const codes = Object.entries(given as Record<string, { code: string }>).map(([field, { code }]) => [field, code])
      expect(Object.fromEntries(codes)).toEqual(details)
    }
    for (const path of [ORDERS, CREATORS]) {
      expect(await caller.call('GET', path, { authorization: null })).toMatchObject({
        status: 401,
        body: { code: 401, timestamp: expect.any(Number), reversal_status: 'NONE' },
      })
      await expectNo(403, { params: 'role_missing' }, path, ['', unprivileged])
      for (const [query, details] of [
        ['?status=LOST', { 'query.status': 'field_value' }],
        ['?userUids=x', { 'query.userUids.0': 'field_format' }],
        ['?startTime=2026-01-02T00:00:00Z&endTime=2026-01-01T00:00:00Z', { 'query.endTime': 'field_range' }],
        [
          '?status=LOST&merchantCompanyEntityUid=x',
          { 'query.status': 'field_value', 'query.merchantCompanyEntityUid': 'field_format' },
        ],
        ['?merchantCompany=%20', { 'query.merchantCompany': 'field_format' }],
        ['?merchantCompany=', { 'query.merchantCompany': 'field_format' }],
        ['?entityUid=x', { 'query.entityUid': 'field_unknown' }],
        ["?orderReference=a&orderReference=b'%20or%20true", { 'query.orderReference': 'field_type' }],
      ] as const)
        await expectNo(400, details, path, [query])
    }
    await expectNo(400, { 'query.pageSize': 'field_range' }, ORDERS, ['?pageSize=101'])
    await expectNo(400, { 'query.pageSize': 'field_unknown' }, CREATORS, ['?pageSize=10'])
    await expectNo(404, { params: 'path_unknown' }, `${ORDERS}/1`, [])
  })

  it('are listed page by page, the newest first, with what the pages amount to', async () => {
    const first = await get(ORDERS, '?pageSize=40')
    const { metadata } = first.body as { metadata: { totalItems: number; totalPages: number } }
    expect(metadata).toMatchObject({ pageNumber: 1, pageSize: 40 })
    expect(metadata.totalPages).toBe(Math.ceil(metadata.totalItems / 40))
    const ids: string[] = []
    for (let page = 1; page <= metadata.totalPages; page++)
      ids.push(...listed(await get(ORDERS, `?pageSize=40&pageNumber=${page}`)).map(({ orderId }) => orderId))
    expect(new Set(ids).size).toBe(metadata.totalItems)
    const other = await get(ORDERS, '?pageSize=100&orderBy=ASC')
    expect(listed(other)[0]?.orderId).toBe(ids.at(-1))
    expect(await get(ORDERS, `?pageNumber=${metadata.totalPages + 1}&pageSize=40`)).toMatchObject({
      status: 200,
      body: { orders: [], metadata: { totalItems: metadata.totalItems } },
    })
  })

  it('are shown to their own entity only, whatever is asked', async () => {
    const queries = [
      '',
      '?orderReference=order-9',
      `?userUids=${uid(1)},${uid(3)}&userUids=${uid(5)}`,
      '?merchantCompany=a',
    ]
    for (const query of queries) {
      expect(listed(await get(ORDERS, query)).every(({ entityUid }) => entityUid === MINE)).toBe(true)
      expect(listed(await get(ORDERS, query, theirs)).every(({ entityUid }) => entityUid === THEIRS)).toBe(true)
    }
    expect(listed(await get(ORDERS, '?orderReference=order-9'))).toEqual([])
    expect(listed(await get(ORDERS, '?orderReference=order-9', theirs)).map(({ orderId }) => orderId)).toEqual([
      'order-9',
    ])
  })

  describe('their creators', () => {
    it('are listed by name, once each, under the same filters', async () => {
      const { text, status } = await get(CREATORS, '?status=SUBMITTED')
      expect(status).toBe(200)
      expect(JSON.parse(text)).toEqual([
        { createdUserUid: uid(1), createdBy: 'User 1' },
        { createdUserUid: uid(4), createdBy: 'User 4' },
      ])
      expect(JSON.parse((await get(CREATORS, '?orderReference=order-9')).text)).toEqual([])
    })

    it('say in every answer that they are to go, when, and what comes after them; and who asks is counted', async () => {
      const counted = async () => (await caller.gateway.deps.metrics.deprecatedCalls.get()).values[0]?.value ?? 0
      const before = await counted()
      for (const query of ['', '?status=LOST']) {
        const { headers } = await get(CREATORS, query)
        expect(headers.get('deprecation')).toMatch(/^@\d{10}$/)
        expect(Date.parse(headers.get('sunset') ?? '')).toBeGreaterThan(
          Number(headers.get('deprecation')?.slice(1)) * 1_000,
        )
        expect(headers.get('sunset')).toMatch(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
        expect(headers.get('link')).toBe('</oidc/orders>; rel="successor-version"')
      }
      expect(await counted()).toBe(before + 1)
      expect((await get(ORDERS)).headers.get('deprecation')).toBeNull()
    })
  })
})
