// Single jobs from the client library through queue, worker and store to the results queue.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import { describeEngines } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'

describeEngines('single jobs', engine => {
  let installation: Installation
  let client: Client
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['interactive'] })
    client = await installation.connect()
  })
  afterAll(() => installation?.close())

  const create = async (card: Parameters<Client['encryptCard']>[0], more = {}) =>
    client.call('token-create', { token_scope: installation.scope, ...(await client.encryptCard(card)), ...more })

  it('makes a token of a card, and the same token again', async () => {
    const first = await create({
      cardNumber: '4111111111111111',
      expiryMonth: 12,
      expiryYear: 2030,
      cardholderName: 'ANNA MEYER',
    })
    expect(first).toMatchObject({
      status: 'SUCCEEDED',
      code: 200,
      record: { bin: '41111111', last_four: '1111', token_status: 'ACTIVE', expiry_month: 12 },
    })
    expect(first.record?.['reuse_token']).toMatch(/^t[0-9A-Z]{26}$/)
    const again = await create({ cardNumber: '4111111111111111', expiryMonth: 11, expiryYear: 31 })
    expect(again.record).toMatchObject({
      reuse_token: first.record?.['reuse_token'],
      expiry_month: 11,
      expiry_year: 2031,
      card_holder_name: 'ANNA MEYER',
    })
  })

  it('walks a token through its life', async () => {
    const made = await create({ cardNumber: '5555555555554444', expiryMonth: 1, expiryYear: 2031 })
    const id = made.record?.['reuse_token']
    expect(await client.call('token-lifecycle', { id, action: 'SUSPEND' })).toMatchObject({
      code: 204,
      record: { token_status: 'SUSPENDED' },
    })
    expect(
      await client.call('token-update', { id, card_holder_name: 'BEN', card_holder_email: 'ben@example.com' }),
    ).toMatchObject({
      code: 200,
      record: { card_holder_name: 'BEN', token_status: 'SUSPENDED' },
    })
    expect(await client.call('token-lifecycle', { id, action: 'ACTIVATE' })).toMatchObject({
      record: { token_status: 'ACTIVE' },
    })
    expect(await client.call('token-lifecycle', { id, action: 'DELETE' })).toMatchObject({
      record: { token_status: 'DELETED' },
    })
    expect(await client.call('token-update', { id, expiry_month: 2 })).toMatchObject({
      code: 404,
      error: { details: { 'body.id': { code: 'token_not_found' } } },
    })
  })
})
