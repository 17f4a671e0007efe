// Releases of owners that reach workers without their kind: none is lost or half done.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../../producers/client.ts'
import { claimsOf, openDesk, send } from '../../security/forge.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type Owners, openOwners } from './owners.ts'

describeStore('a release', engine => {
  let installation: Installation
  let client: Client
  let owners: Owners
  beforeAll(async () => {
    installation = await openInstallation(engine)
    client = await installation.connect()
    owners = openOwners(installation, client)
  })
  afterAll(() => installation?.close())

  it('waits in its queue until a worker listens that knows it', async () => {
    const others = await installation.startWorkers({ env: { TOKENMILL_KINDS: 'token-create,token-batch' } })
    const owner = { provider: 'acme', card_id: 'waits' }
    const id = await owners.own(1, owner)
    const released = owners.release(owner)
    // Another job of the same client is answered while the release waits.
    await owners.add(2, { provider: 'acme', card_id: 'meanwhile' })
    expect(await installation.queues.depth('reference')).toMatchObject({ waiting: 1 })
    expect(await owners.ownersOf(id)).toEqual(['waits'])
    await others.close()
    await installation.startWorkers()
    expect(await released).toMatchObject({ code: 200, record: { outcome: 'UPDATED' } })
  })

  it('in a chunk of an unknown kind is refused with its chunk, without a receipt, and may come again under its name', async () => {
    const owner = { provider: 'acme', card_id: 'chunk' }
    await owners.own(3, owner)
    const other = await installation.connect({ replyTo: 'chunks' })
    const desk = openDesk(other)
    const { jti, block = '', request } = await owners.chunk('reference', [{ ...owner, action: 'RELEASE' }])
    const unknown = { ...request, record_kind: 'of-a-release-to-come' }
    const claims = claimsOf(installation.credentials, {
      kind: 'token-batch',
      jti,
      request: unknown,
      reply_to: 'chunks',
    })
    await send(installation.queues, installation.credentials, { claims, block })
    expect(await desk.answer(jti)).toMatchObject({
      code: 400,
      error: { details: { 'body.record_kind': { code: 'field_value' } } },
    })
    const { store } = installation.vault
    const { rows } = await store.query<{ n: number }>({
      text: 'select count(*)::integer as n from tokenmill.receipt where jti = $1',
      values: [jti],
    })
    expect(rows).toEqual([{ n: 0 }])
    const { records } = await client.call('token-batch', request, { jti, block })
    expect(records).toMatchObject([{ outcome: 'UPDATED' }])
  })
})
