// What tests of webhooks share: an installation with one worker process, a scheduler and a receiver, and what is done to its endpoints.
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { addEndpoint, removeEndpoint } from '../../../src/acts/events.ts'
import type { EventType } from '../../../src/job/event.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import type * as events from '../../../src/store/event/events.ts'
import { tell } from '../../../src/store/event/tell.ts'
import { makeWebhookSecret } from '../../../src/vault/webhook-secret.ts'
import { openScheduleFor } from '../../producers/schedule/bundle.ts'
import type { Engine } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import type { Pace } from './quick.ts'
import { openReceiver, type Receiver } from './receiver.ts'

export const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
export interface Subscribed {
  endpointId: string
  path: string
}

export interface Subscription {
  protocol?: 'http' | 'https'
  type?: EventType
  host?: string
}

export interface WebhookBench {
  installation: Installation
  receiver: Receiver
  /** The worker's script. */
  script: string
  /** Subscribes to a new path, and sets its secret in the receiver. */
  subscribe(subscription?: Subscription): Promise<Subscribed>
  happen(subject: string, type?: EventType, revision?: number): Promise<void>
  deliveriesTo(to: Subscribed): Promise<readonly deliveries.Delivery[]>
  takenAt(to: Subscribed): Receiver['taken']
  /** Until so many of its deliveries are in this state. */
  untilAll(to: Subscribed, state: deliveries.DeliveryState, n?: number): Promise<unknown>
  end(to: Subscribed): Promise<void>
  close(): Promise<void>
}

export async function openWebhookBench(engine: Engine, { script, leaseMs }: Pace): Promise<WebhookBench> {
  const installation = await openInstallation(engine, { TOKENMILL_PRIVATE_HOSTS: '127.0.0.1' })
  const { store, ring } = installation.vault
  const { clientId } = installation.credentials.signingKey
  const receiver = await openReceiver()
  const path = fileURLToPath(new URL(script, import.meta.url))
  await installation.startWorkers({ script: path, roles: ['interactive'], processes: 1 })
  const schedule = await openScheduleFor(installation, { settings: { webhookLeaseMs: leaseMs } })
  const deliveriesTo = ({ endpointId }: Subscribed) => deliveries.list(store, { endpointId, limit: 1_000 })
  let next = 0
  return {
    installation,
    receiver,
    script: path,
    deliveriesTo,
    async subscribe({ protocol = 'http', type = 'batch.finished', host = '127.0.0.1' } = {}) {
      next += 1
      const path = `/${next}`
      const endpointId = crypto.randomUUID()
      const secret = makeWebhookSecret()
      receiver.trust(path, secret.reveal())
      const url = `${protocol}://${host}:${receiver.port}${path}`
      const sealed = ring.sealWebhookSecret(secret, endpointId)
      const endpoint = { endpointId, clientId, url, events: [type], secret: sealed }
      expect(await addEndpoint(store, ring, endpoint, BY)).toHaveProperty('done')
      return { endpointId, path }
    },
    async happen(subject, type = 'batch.finished', revision = 1) {
      const event: events.Event = { type, clientId, subject, revision, data: { batch_id: subject, revision } }
      await store.transaction(db => tell(db, ring, event))
    },
    takenAt: ({ path }) => receiver.taken.filter(one => one.path === path),
    untilAll: (to, state, n = 1) =>
      until(async () => (await deliveriesTo(to)).filter(one => one.state === state).length === n),
    async end({ endpointId }) {
      await removeEndpoint(store, endpointId, BY)
    },
    async close() {
      await schedule.close()
      await installation.close()
      await receiver.close()
    },
  }
}
