// `webhook`: one attempt to deliver an event to a URL. The request is sent before the line's transaction, which stores
// its result. After a crash in between the request is sent again with the same id, so delivery is at least once.
import { isEndpointGranted } from '../src/acts/endpoint-grants.ts'
import { assert } from '../src/errors.ts'
import { webhookType } from '../src/job/event.ts'
import type { Webhook } from '../src/job/system/webhook.ts'
import * as deliveries from '../src/store/event/deliveries.ts'
import * as endpoints from '../src/store/event/endpoints.ts'
import * as events from '../src/store/event/events.ts'
import type { Db } from '../src/store/pool.ts'
import { signWebhook } from '../src/vault/webhook-secret.ts'
import type { Deps } from './deps.ts'
import { consoleLink } from './webhook/console-link.ts'
import type { Webhooks } from './webhook/post.ts'
import { type Answered, type EndpointChange, type Judged, judge } from './webhook/schedule.ts'
import type { Handler } from './work.ts'

/** `outgoing` is undefined if another attempt was made meanwhile, the endpoint was removed, or its client revoked. */
type Prepared = { outgoing: deliveries.Outgoing | undefined; judged?: Judged }

/** Standard Webhooks: larger bodies are unusual. */
const BODY_BYTES_MAX = 20_000
/** The outcome of an attempt that sent nothing. */
const SKIPPED = 'SKIPPED'

/** What attempts need that no other job does. */
export interface WebhookMeans {
  webhooks: Pick<Webhooks, 'post' | 'schedule'>
  /** The console's address, in this worker's own settings; absent in a product without a console. */
  console?: { origin: string }
  /** The run of a schedule that asked for a report; absent in a product without reports. */
  findRun?: (db: Db, reportUid: string) => Promise<string | undefined>
}

export function openWebhook(means: WebhookMeans): Handler<Webhook, undefined, Prepared> {
  return {
    prepare: async ({ request }, _opened, { store }) => ({
      outgoing: await deliveries.findOutgoing(store, request.delivery_id, request.attempt),
    }),

    async reach(_work, { outgoing }, deps) {
      if (!outgoing) return { outgoing }
      if (outgoing.disabledAt !== null) return { outgoing, judged: putOff(outgoing) }
      const answered = await post(outgoing, means, deps)
      const judged = judge(answered, outgoing.step, means.webhooks.schedule, {
        now: deps.clock(),
        chance: Math.random(),
      })
      return { outgoing, judged }
    },

    decide: async ({ request }, { outgoing, judged }, deps) => ({
      async save(db) {
        const attempt = { deliveryId: request.delivery_id, attempt: request.attempt }
        // An operator's act on an endpoint locks it before its deliveries.
        if (outgoing && judged?.endpoint) await endpoints.lock(db, outgoing.endpointId)
        const isRecorded = outgoing && judged ? await deliveries.record(db, attempt, judged.tried) : false
        if (outgoing && judged && isRecorded) await change(db, outgoing.endpointId, judged.endpoint)
        const outcome = isRecorded && judged ? judged.tried.next.state : SKIPPED
        return { code: 200, outcome, tokenId: null, record: { delivery_state: outcome } }
      },
      // Only an attempt that was made and recorded is counted, and only once.
      saved(answer) {
        const isRecorded = 'outcome' in answer && answer.outcome !== SKIPPED
        if (outgoing?.disabledAt === null && judged && isRecorded) note(outgoing, judged, deps)
      },
    }),
  }
}

async function post(
  outgoing: deliveries.Outgoing,
  { webhooks, console, findRun }: WebhookMeans,
  { store, ring, clock, onUngranted, onUnproved }: Deps,
): Promise<Answered> {
  const { deliveryId: id, endpointId, clientId, events: wanted, type, addresseeId, data, occurredAt } = outgoing
  if (!isEndpointGranted(ring, outgoing)) {
    onUngranted('endpoint', endpointId)
    return { reason: 'endpoint_ungranted' }
  }
  const { addresseeId: ofClient, eventMac: mac, eventMacVersion: macVersion } = outgoing
  if (!events.isProved(ring, { ...outgoing, clientId: ofClient, mac, macVersion })) {
    onUnproved('event', id)
    return { reason: 'event_unproved' }
  }
  // tokenmill writes no such delivery.
  if (addresseeId !== clientId || !wanted.includes(type)) return { reason: 'misdirected' }
  const sealed = await endpoints.findSecrets(store, endpointId)
  const secrets = sealed.map(one => ring.openWebhookSecret(one.sealed, one.keyVersion, endpointId))
  // The endpoint was removed just now.
  if (secrets.length === 0) return { reason: 'endpoint_removed' }
  const runOf = async () => findRun?.(store, String(data['report_uid']))
  const link = console && (await consoleLink(outgoing, console, runOf))
  const told = link === undefined ? data : { ...data, console_url: link }
  const body = JSON.stringify({ type: webhookType(type), timestamp: new Date(occurredAt).toISOString(), data: told })
  assert(Buffer.byteLength(body) < BODY_BYTES_MAX, 'an event holds names, ids and counts only')
  const timestamp = Math.floor(clock() / 1000)
  return webhooks.post(outgoing, { id, timestamp, signature: signWebhook(secrets, { id, timestamp, body }), body })
}

/** A disabled endpoint gets nothing; its delivery waits for an operator. */
function putOff({ step }: deliveries.Outgoing): Judged {
  const next = { state: 'WAITING', inMs: 0, step } as const
  return { tried: { next, status: null, reason: 'endpoint_disabled' }, endpoint: undefined }
}

async function change(db: Db, endpointId: string, endpoint: EndpointChange): Promise<void> {
  if (endpoint === undefined) return
  if (endpoint === 'disable') await endpoints.disable(db, endpointId)
  else if (endpoint === 'recover') await endpoints.recover(db, endpointId)
  else await endpoints.slow(db, endpointId, endpoint.slowMs)
}

/** Counts an attempt, and logs one that didn't deliver. The line never holds the URL, because receivers often put secrets into it. */
function note({ deliveryId, endpointId }: deliveries.Outgoing, { tried, endpoint }: Judged, deps: Deps): void {
  const { state } = tried.next
  deps.metrics.webhooks.inc({ outcome: state === 'WAITING' ? 'again' : state.toLowerCase() })
  if (state === 'DELIVERED') return
  const about = { delivery: deliveryId, endpoint: endpointId, status: tried.status, reason: tried.reason }
  if (endpoint === 'disable') deps.log.warn(about, 'a webhook endpoint answered 410 and is disabled')
  else deps.log[state === 'FAILED' ? 'warn' : 'debug'](about, 'a webhook was not delivered')
}
