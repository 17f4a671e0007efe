// `tokenmill events deliveries` and `events redeliver`: shows the deliveries of events to URLs, and repeats one.
import { type DeliveryRefusal, redeliver as redeliverAct } from '../../../src/acts/events.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openCommandStore, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, type Terminal, table } from '../../terminal.ts'
import { findClient } from '../client/find-client.ts'

interface ListOptions extends JsonOption {
  endpoint?: string
  client?: string
  state?: deliveries.DeliveryState
  limit: number
}

const REFUSED: Record<DeliveryRefusal, string> = {
  no_delivery: 'There is no such delivery; `tokenmill events deliveries` lists those of the last 7 days.',
  no_endpoint: 'Its subscription was removed.',
  client_revoked: 'Its client is revoked, and is told nothing any more.',
  endpoint_disabled:
    'Its endpoint is disabled; `tokenmill events enable ID` lets it go on, and what waits is sent then.',
  under_way: 'An attempt at it is being made.',
}

export function list(terminal: Terminal, { endpoint, client, state, limit, ...options }: ListOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const clientId = client === undefined ? undefined : (await findClient(store, client)).clientId
    const found = await deliveries.list(store, { endpointId: endpoint, clientId, state, limit })
    const values = found.map(one => ({
      delivery_id: one.deliveryId,
      endpoint_id: one.endpointId,
      client_id: one.clientId,
      event: one.type,
      subject: one.subject,
      revision: one.revision,
      state: one.state,
      attempts: one.attempt,
      ...(one.status !== null && { status: one.status }),
      ...(one.reason !== null && { reason: one.reason }),
      ...(one.triedAt !== null && { tried_at: moment(one.triedAt) }),
      ...(one.state === 'WAITING' && { next_at: moment(one.nextAt) }),
      occurred_at: moment(one.occurredAt),
    }))
    const rows = values.map(one => [
      ...[one.delivery_id, one.event, one.subject, one.state, String(one.attempts)],
      [one.status, one.reason === 'status' ? undefined : one.reason].filter(word => word !== undefined).join(' ') ||
        '-',
      one.next_at ?? '-',
    ])
    const headings = ['DELIVERY', 'EVENT', 'SUBJECT', 'STATE', 'ATTEMPTS', 'LAST', 'NEXT']
    print(terminal, options, values, table(headings, rows))
  })
}

export function redeliver(terminal: Terminal, id: string, options: JsonOption & OperatorOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const by = await byOf({ action: 'events.redeliver', subject: id }, options, store)
    const verdict = await redeliverAct(store, id, by)
    if ('refused' in verdict) throw new Stop(REFUSED[verdict.refused])
    print(terminal, options, { delivery_id: id }, `${id} is due now.`)
  })
}
