// `tokenmill events`: what the commands print and store.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as deliveries from '../../src/store/event/deliveries.ts'
import * as endpoints from '../../src/store/event/endpoints.ts'
import { tell } from '../../src/store/event/tell.ts'
import { describeStore } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { cli as runCli } from './command-bench.ts'

const URL_ = 'https://receiver.example/hooks?key=s3cr3t'

describeStore('tokenmill events', engine => {
  let installation: Installation
  let boss: string
  beforeAll(async () => {
    installation = await openInstallation(engine)
    boss = (await installation.addClient('boss', { roles: ['ADMIN'] })).clientFile
  })
  afterAll(() => installation?.close())

  const cli = (...words: string[]) => runCli(['events', ...words], { env: installation.env })
  const add = (to = URL_, ...more: string[]) =>
    cli('add', 'first', '--to', to, '--events', 'batch.finished,report.failed', ...more, '--json')
  const list = async () => (await cli('list', '--json')).json<Record<string, unknown>[]>()
  const audits = async (subject: unknown) =>
    (
      await installation.vault.store.query<{ actor: string; action: string; detail: Record<string, unknown> }>({
        text: `select actor, action, detail from tokenmill.audit where subject = $1 and outcome = 'done' order by audit_id`,
        values: [subject],
      })
    ).rows
  async function happen(subject: string): Promise<string> {
    const { clientId } = installation.credentials.signingKey
    const event = { type: 'batch.finished', clientId, subject, revision: 1, data: {} } as const
    await installation.vault.store.transaction(db => tell(db, installation.vault.ring, event))
    const [first] = await deliveries.list(installation.vault.store, { limit: 1 })
    return first?.deliveryId ?? ''
  }

  describe('add', () => {
    it('shows the secret once, stores it sealed, and leaves an audit row without the URL’s path', async () => {
      const said = await add(URL_, '--operator', boss, '--reason', 'asked for in a letter')
      expect(said.status).toBe(0)
      expect(said.stderr).toContain('this once')
      const { endpoint_id: id, secret } = said.json<{ endpoint_id: string; secret: string }>()
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
      expect(JSON.stringify(await list())).not.toContain('whsec_')
      expect(await list()).toMatchObject([{ endpoint_id: id, to: URL_, state: 'ENABLED' }])
      const { store, ring } = installation.vault
      const [sealed] = await endpoints.findSecrets(store, id)
      expect(sealed?.sealed.toString('latin1')).not.toContain(secret.slice(6))
      expect(ring.openWebhookSecret(sealed?.sealed ?? Buffer.alloc(0), sealed?.keyVersion ?? 0, id).reveal()).toBe(
        secret,
      )
      const [{ actor, action, detail } = expect.fail('an audit row')] = await audits(id)
      expect({ actor, action }).toEqual({ actor: expect.stringMatching(/^client:c/), action: 'events.add' })
      expect(detail).toMatchObject({
        to: 'https://receiver.example',
        reason: 'asked for in a letter',
        events: ['batch.finished', 'report.failed'],
        proof: expect.any(String),
      })
      expect(JSON.stringify(detail)).not.toMatch(/s3cr3t|whsec_/)
      await cli('remove', id)
    })

    it('refuses what is no public https URL, unless this host’s settings name the host', async () => {
      const wrong = ['http://receiver.example/', 'https://10.0.0.1/', 'https://[::1]/', 'https://u:p@receiver.example/']
      for (const to of [...wrong, 'https://receiver.example/#x', 'ftp://receiver.example/', 'nonsense'])
        expect(await add(to), to).toMatchObject({ status: 64, stderr: expect.stringContaining('--to') })
      for (const to of ['http://10.0.0.1:8080/', 'https://[::1]/']) {
        expect(await add(to), to).toMatchObject({
          status: 64,
          stderr: expect.stringContaining('TOKENMILL_PRIVATE_HOSTS'),
        })
        const named = await runCli(['events', 'add', 'first', '--to', to, '--events', 'batch.finished', '--json'], {
          env: { ...installation.env, TOKENMILL_PRIVATE_HOSTS: '10.0.0.1:8080,[::1]' },
        })
        expect(named).toMatchObject({ status: 0 })
        await cli('remove', named.json<{ endpoint_id: string }>().endpoint_id)
      }
      expect(await add('ftp://10.0.0.1/')).toMatchObject({ status: 64 })
    })

    it('refuses unknown events, unknown clients, operators without ADMIN, and a second subscription of a queue', async () => {
      expect(await cli('add', 'first', '--to', 'queue', '--events', 'batch.begun')).toMatchObject({ status: 64 })
      expect(await cli('add', 'nobody', '--to', 'queue', '--events', 'batch.finished')).toMatchObject({ status: 1 })
      expect(await add(URL_, '--operator', installation.clientFile)).toMatchObject({ status: 78 })
      const said = await add('queue')
      expect(said).toMatchObject({ status: 0 })
      expect(said.json()).not.toHaveProperty('secret')
      expect(await add('queue')).toMatchObject({ status: 1, stderr: expect.stringContaining('remove') })
      const { endpoint_id: id } = said.json<{ endpoint_id: string }>()
      expect(await cli('rotate-secret', id)).toMatchObject({ status: 1 })
      expect(await cli('remove', id)).toMatchObject({ status: 0 })
      expect(await cli('remove', id)).toMatchObject({ status: 1 })
      expect(await list()).toEqual([])
    })
  })

  it('turns secrets, enables endpoints and has deliveries made again, each as an audited act', async () => {
    const { store } = installation.vault
    const { endpoint_id: id, secret } = (await add()).json<{ endpoint_id: string; secret: string }>()
    const turned = (await cli('rotate-secret', id, '--json')).json<Record<string, string>>()
    expect(turned['secret']).toMatch(/^whsec_/)
    expect(turned['secret']).not.toBe(secret)
    expect(await endpoints.findSecrets(store, id)).toHaveLength(2)
    expect(await cli('rotate-secret', id)).toMatchObject({ status: 1, stderr: expect.stringContaining('--at-once') })
    expect(await cli('rotate-secret', id, '--at-once')).toMatchObject({ status: 0 })
    expect(await endpoints.findSecrets(store, id)).toHaveLength(1)

    const delivery = await happen('b1')
    expect(await cli('enable', id)).toMatchObject({ status: 1 })
    await endpoints.disable(store, id)
    expect(await list()).toMatchObject([{ state: 'DISABLED' }])
    const looked = await runCli(['status', '--json'], { env: installation.env })
    expect(looked.json<{ checks: unknown[] }>().checks).toContainEqual(
      expect.objectContaining({ name: 'webhooks', state: 'warning', says: expect.stringContaining(`${id} of first`) }),
    )
    expect(await cli('enable', id)).toMatchObject({ status: 0 })

    const [claimed] = await deliveries.claim(store, { leaseMs: 60_000, limit: 10 })
    expect(claimed).toMatchObject({ deliveryId: delivery, attempt: 1 })
    expect(await cli('redeliver', delivery)).toMatchObject({ status: 1, stderr: expect.stringContaining('attempt') })
    const failed = { next: { state: 'FAILED' }, status: 404, reason: 'status' } as const
    await deliveries.record(store, { deliveryId: delivery, attempt: 1 }, failed)
    const shown = await cli('deliveries', '--state', 'FAILED', '--client', 'first')
    expect(shown.stdout).toMatch(new RegExp(`^${delivery} +batch.finished +b1 +FAILED +1 +404 +-$`, 'm'))
    expect(await cli('redeliver', delivery)).toMatchObject({ status: 0 })
    expect(await deliveries.find(store, delivery)).toMatchObject({ state: 'WAITING', step: 0, attempt: 1 })
    expect(await deliveries.claim(store, { leaseMs: 60_000, limit: 10 })).toMatchObject([{ attempt: 2 }])
    expect((await audits(id)).map(({ action }) => action)).toEqual([
      ...['events.add', 'events.rotate-secret', 'events.rotate-secret', 'events.enable'],
    ])
    expect((await audits(delivery)).map(({ action }) => action)).toEqual(['events.redeliver'])
    await cli('remove', id)
  })
})
