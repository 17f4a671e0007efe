// `tokenmill events add`, `list`, `remove`, `rotate-secret` and `enable`: runs the act and puts its result into words.
// A secret is shown once, when it is made.
import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import type { By } from '../../../src/acts/act.ts'
import {
  addEndpoint,
  type EndpointRefusal,
  enableEndpoint,
  removeEndpoint,
  rotateSecret,
} from '../../../src/acts/events.ts'
import { systemClock } from '../../../src/clock.ts'
import type { Config } from '../../../src/config.ts'
import type { EventType } from '../../../src/job/event.ts'
import { readPrivateHosts } from '../../../src/outbound.ts'
import { isPrivateAddress } from '../../../src/private-address.ts'
import type { Secret } from '../../../src/secret.ts'
import * as endpoints from '../../../src/store/event/endpoints.ts'
import type { Store } from '../../../src/store/pool.ts'
import { makeWebhookSecret } from '../../../src/vault/webhook-secret.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { type OpenedVault, openCommandStore, openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { facts, moment, print, say, type Terminal, table } from '../../terminal.ts'
import { findClient, findLiveClient } from '../client/find-client.ts'

type ActOptions = JsonOption & OperatorOptions

interface AddOptions extends ActOptions {
  to: string
  events: EventType[]
}

const URL_CHARS_MAX = 2_048
const IF_NAMED = 'if TOKENMILL_PRIVATE_HOSTS names its host, here and on the hosts of workers'
const KEEP_IT = 'The secret is shown this once: give it to whoever receives the webhooks.'

const REFUSED: Record<EndpointRefusal, string> = {
  no_client: 'There is no such client.',
  client_revoked: 'This client is revoked.',
  queue_subscribed: 'The queue of this client has a subscription; remove that one first (`tokenmill events list`).',
  no_endpoint: 'There is no such subscription; `tokenmill events list` lists them.',
  no_secret: 'A subscription at a queue has no secret: the installation signs what is told there.',
  rotating: 'The former secret still counts; wait for its end, or end it with --at-once.',
  not_disabled: 'This endpoint is not disabled.',
  not_admin: 'key.expiring is for operators: the client needs the role ADMIN.',
}

export function add(terminal: Terminal, word: string, options: AddOptions): Promise<void> {
  return withSession(terminal, async session => {
    const url = options.to === 'queue' ? null : readUrl(options.to, session.config)
    const vault = await openVault(session)
    const { store, ring } = vault
    const { clientId } = await findLiveClient(store, word)
    const endpointId = randomUUID()
    const made = url === null ? undefined : makeWebhookSecret()
    const secret = made ? await sealSecret(vault, made, endpointId) : null
    const endpoint = { endpointId, clientId, url, events: options.events, secret }
    const by = await byOf({ action: 'events.add', subject: endpointId }, options, store, ring)
    done(await addEndpoint(store, ring, endpoint, by))
    const shown = { endpoint_id: endpointId, client_id: clientId, to: url ?? 'queue', events: options.events.join(',') }
    printWithSecret(terminal, options, { ...shown, events: options.events }, shown, made)
  })
}

export function list(terminal: Terminal, options: JsonOption & { client?: string }): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const clientId = options.client === undefined ? null : (await findClient(store, options.client)).clientId
    const found = await endpoints.list(store, clientId)
    const now = systemClock()
    const values = found.map(one => ({
      endpoint_id: one.endpointId,
      client_id: one.clientId,
      to: one.url ?? 'queue',
      events: one.events,
      state: stateOf(one, now),
      ...(one.formerUntil !== null && one.formerUntil > now && { former_secret_until: moment(one.formerUntil) }),
      created_at: moment(one.createdAt),
    }))
    const rows = values.map(one => [one.endpoint_id, one.client_id, one.state, one.events.join(','), one.to])
    print(terminal, options, values, table(['ENDPOINT', 'CLIENT', 'STATE', 'EVENTS', 'TO'], rows))
  })
}

export function remove(terminal: Terminal, id: string, options: ActOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const by = await actorOf('events.remove', id, options, store)
    const { ended } = done(await removeEndpoint(store, id, by))
    print(terminal, options, { endpoint_id: id, ended }, `${id} is removed; ${ended} deliveries are not made any more.`)
  })
}

export function rotate(terminal: Terminal, id: string, options: ActOptions & { atOnce?: boolean }): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const { store, ring } = vault
    const made = makeWebhookSecret()
    const rotation = {
      endpointId: id,
      secret: await sealSecret(vault, made, id),
      atOnce: options.atOnce === true,
    }
    const by = await byOf({ action: 'events.rotate-secret', subject: id }, options, store, ring)
    const { formerUntil } = done(await rotateSecret(store, rotation, by, systemClock()))
    const shown = { endpoint_id: id, former_secret_until: moment(formerUntil) }
    printWithSecret(terminal, options, shown, shown, made)
  })
}

export function enable(terminal: Terminal, id: string, options: ActOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    done(await enableEndpoint(store, id, await actorOf('events.enable', id, options, store)))
    print(terminal, options, { endpoint_id: id, state: 'ENABLED' }, `${id} is enabled; what waits for it is sent.`)
  })
}

function printWithSecret(
  terminal: Terminal,
  options: JsonOption,
  value: Record<string, unknown>,
  shown: Record<string, string>,
  secret: Secret | undefined,
): void {
  const revealed = secret && { secret: secret.reveal() }
  print(terminal, options, { ...value, ...revealed }, facts({ ...shown, ...revealed }))
  if (secret) say(terminal, KEEP_IT)
}

const actorOf = (action: string, subject: string, options: OperatorOptions, store: Store): Promise<By> =>
  byOf({ action, subject }, options, store)

function done<Done>(verdict: { done: Done } | { refused: EndpointRefusal }): Done {
  if ('refused' in verdict) throw new Stop(REFUSED[verdict.refused])
  return verdict.done
}

function stateOf({ disabledAt, slowUntil, atOnce }: endpoints.Endpoint, now: number): string {
  if (disabledAt !== null) return 'DISABLED'
  return (slowUntil ?? 0) > now || atOnce < endpoints.AT_ONCE_MAX ? 'SLOW' : 'ENABLED'
}

/**
 * Checks the URL's text, by this host's list of private hosts. Workers check the addresses of its host at each request, by
 * their own list.
 */
function readUrl(text: string, { privateHosts }: Pick<Config, 'privateHosts'>): string {
  if (!URL.canParse(text) || text.length > URL_CHARS_MAX)
    throw new Stop('--to: it is neither `queue` nor a URL.', EXIT.usage)
  const { protocol, hostname, port, username, password, hash, href } = new URL(text)
  if (username !== '' || password !== '' || hash !== '')
    throw new Stop('--to: a URL here has no user, password or fragment.', EXIT.usage)
  const isExempt = readPrivateHosts(privateHosts)(hostname, port || (protocol === 'http:' ? '80' : '443'))
  if (protocol !== 'https:' && !(isExempt && protocol === 'http:'))
    throw new Stop(`--to: the URL must be https; it may be http ${IF_NAMED}.`, EXIT.usage)
  const host = hostname.replace(/^\[|\]$/g, '')
  if (!isExempt && isIP(host) !== 0 && isPrivateAddress(host))
    throw new Stop(`--to: this is a private address, which is permitted only ${IF_NAMED}.`, EXIT.usage)
  return href
}

async function sealSecret({ ring }: Pick<OpenedVault, 'ring'>, secret: Secret, endpointId: string) {
  await ring.reserve('webhook')
  return ring.sealWebhookSecret(secret, endpointId)
}
