// The list of clients, and the page of one: what it may do, its keys and when they end. An API key, its hash and public halves of
// keys aren't shown.
import type { Catalogue } from '../../../src/job/catalogue.ts'
import * as seenClients from '../../../src/store/console/installation/client-list.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, id, moment } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { keyState } from './keys.ts'
import { mark, table } from './table.ts'
import { answerWhole, LISTED, orderLinks, pages, parameter } from './whole.ts'

type Client = seenClients.ShownClient

const KEYS_LISTED = 100
const FORM = /^[a-z0-9]{1,32}$/
const ORDERS: Record<seenClients.ClientOrder, string> = { newest: 'Newest first', name: 'By name' }

export function clientRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store, clock, catalogue } = deps

  app.get('/installation/clients', (request, reply) => {
    const order = parameter(request.query, 'order', /^name$/) === undefined ? 'newest' : 'name'
    const after = parameter(request.query, 'after', FORM)
    const at = (chosen: seenClients.ClientOrder, last?: Client) =>
      last === undefined
        ? path`/installation/clients?order=${chosen}`
        : path`/installation/clients?order=${chosen}&after=${last.clientId}`
    return answerWhole(deps, request, reply, {
      title: 'Clients',
      content: async ({ sight }) => {
        const found = await seenClients.list(sight, store, { order, after, limit: LISTED + 1 })
        return html`<p class="up"><a href="/installation">Installation</a></p>
<h1>Clients</h1>
${orderLinks(seenClients.CLIENT_ORDERS, order, { words: ORDERS, addressOf: chosen => at(chosen) })}
${found.length === 0 ? html`<p class="empty">No further clients.</p>` : clientTable(found.slice(0, LISTED), clock())}
${pages(found, after !== undefined, last => at(order, last))}
<p class="same">The same on the command line: ${command('tokenmill', 'client', 'list')}</p>`
      },
    })
  })

  app.get<{ Params: { client: string } }>('/installation/clients/:client', (request, reply) => {
    const { client: clientId } = request.params
    return answerWhole(deps, request, reply, {
      title: 'One client',
      content: async ({ sight }) => {
        const client = FORM.test(clientId) ? await seenClients.find(sight, store, clientId) : undefined
        if (!client) return undefined
        const keys = await seenClients.listKeys(sight, store, { clientId, limit: KEYS_LISTED })
        return clientPage(client, { keys, kinds: kindsOf(client.roles, catalogue) }, clock())
      },
    })
  })
}

export function clientTable(clients: readonly Client[], now: number): Html {
  return table(
    [
      ...[
        { title: 'Client' },
        { title: 'State', class: 'st' },
        { title: 'Roles', class: 'words few-less' },
        { title: 'Entities', class: 'figure few-less' },
      ],
      ...[
        { title: 'Its keys end (UTC)', class: 'second' },
        { title: 'Last batch (UTC)' },
        { title: 'Added (UTC)', class: 'less' },
      ],
    ],
    clients.map(client => [
      html`<a href="${path`/installation/clients/${client.clientId}`}">${client.name}</a>`,
      stateOf(client),
      client.isSystem ? 'its own' : client.roles.join(', '),
      client.isSystem ? 'all' : String(client.entities.length),
      keysEnd(client, now),
      client.lastBatchAt === null ? '–' : moment(client.lastBatchAt),
      moment(client.createdAt),
    ]),
  )
}

function stateOf({ revokedAt, isSystem }: Client): Html {
  if (revokedAt !== null) return mark('gone', 'REVOKED')
  return mark('live', isSystem ? 'SYSTEM' : 'ACTIVE')
}

const DAY_MS = 86_400_000
/** As the check `keys` of `tokenmill status`. */
const SOON_MS = 14 * DAY_MS

function keysEnd({ revokedAt, liveKeys, keysEndAt }: Client, now: number): Value {
  if (revokedAt !== null) return '–'
  if (liveKeys === 0) return mark('warn', 'no key is valid')
  if (keysEndAt === null) return 'no end'
  if (keysEndAt - now > SOON_MS) return moment(keysEndAt)
  return html`${mark('warn', 'soon')} ${moment(keysEndAt)}`
}

function clientPage(
  client: Client,
  { keys, kinds }: { keys: readonly seenClients.ShownClientKey[]; kinds: readonly string[] },
  now: number,
): Html {
  const { clientId, name, entities, roles, alg, names, createdAt, revokedAt, lastBatchAt, isSystem } = client
  const at = (ms: number | null) => (ms === null ? undefined : html`${moment(ms)} UTC`)
  const facts: [string, Value][] = [
    ['Id', id(clientId)],
    ['Entities', isSystem ? 'all' : html`${entities.map(entity => html`<code class="id">${entity}</code> `)}`],
    ['Roles', isSystem ? 'those of tokenmill itself' : roles.join(', ')],
    ['Kinds', isSystem ? 'those that tokenmill sends itself' : kinds.join(', ')],
    ['Names of its jobs', names === 'numeric' ? 'may be long numbers' : 'are refused if they could be card numbers'],
    ['Algorithm', alg ?? undefined],
    ['Keys end', keysEnd(client, now)],
    ['Last batch', at(lastBatchAt) ?? 'never sent one'],
    ['Added', at(createdAt)],
    ['Revoked', at(revokedAt)],
    ['Allowed addresses', 'tokenmill has no list of addresses for clients'],
    ['Rate', html`TOKENMILL_RATE_LIMIT of each gateway’s host, for each client; not known here`],
  ]
  const known = facts.filter(([, value]) => value !== undefined)
  return html`<p class="up"><a href="/installation/clients">Clients</a></p>
<h1>${name} ${stateOf(client)}</h1>
<dl class="facts">${known.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>
<section><h2>Keys that sign its jobs</h2>${keyTable(keys, clientId)}</section>
<p class="muted">When it last sent a single job isn’t noted. Whether tokenmill wrote these rows says ${command('tokenmill', 'doctor')} on a host with the key-encryption key.</p>
<p class="same">The same on the command line: ${command('tokenmill', 'client', 'list')} ${command('tokenmill', 'client', 'key', 'list', clientId)}${revokedAt === null && !isSystem ? html` To end it: ${command('tokenmill', 'client', 'revoke', clientId)}` : undefined}</p>`
}

function keyTable(keys: readonly seenClients.ShownClientKey[], clientId: string): Html {
  if (keys.length === 0)
    return html`<div class="empty"><p>A client’s jobs are signed by a key of its own. It has none: nothing that it sends is accepted.</p><p>${command('tokenmill', 'client', 'key', 'add', clientId)}</p></div>`
  return table(
    [
      { title: 'Key' },
      { title: 'State', class: 'st' },
      { title: 'Algorithm' },
      { title: 'Valid until (UTC)', class: 'second' },
      { title: 'Added (UTC)' },
    ],
    keys.map(({ kid, state, alg, validUntil, createdAt }) => [
      id(kid),
      keyState(state),
      alg,
      state === 'REVOKED' ? '–' : validUntil === null ? 'no end' : moment(validUntil),
      moment(createdAt),
    ]),
  )
}

/** What clients with these roles may send. The records of a chunk need roles of their own. */
function kindsOf(roles: readonly string[], { kinds, entry }: Catalogue): string[] {
  return kinds.filter(kind => {
    const { role, systemOnly, recordsIn } = entry(kind)
    return !systemOnly && (role === null ? recordsIn !== null : roles.includes(role))
  })
}
