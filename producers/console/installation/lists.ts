// The lists of token scopes and of capture keys.
import * as seenCaptureKeys from '../../../src/store/console/installation/capture-key-list.ts'
import * as seenScopes from '../../../src/store/console/installation/scope-list.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { keyState } from './keys.ts'
import { table } from './table.ts'
import { answerWhole, LISTED, orderLinks, pages, parameter, UUID } from './whole.ts'

const SCOPE_ORDERS: Record<seenScopes.ScopeOrder, string> = { newest: 'Newest first', entity: 'By entity' }

export function scopeRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get('/installation/scopes', (request, reply) => {
    const order = parameter(request.query, 'order', /^entity$/) === undefined ? 'newest' : 'entity'
    const after = parameter(request.query, 'after', UUID)
    const at = (chosen: seenScopes.ScopeOrder, last?: seenScopes.ShownScope) =>
      last === undefined
        ? path`/installation/scopes?order=${chosen}`
        : path`/installation/scopes?order=${chosen}&after=${last.tokenScope}`
    return answerWhole(deps, request, reply, {
      title: 'Token scopes',
      content: async ({ sight }) => {
        const found = await seenScopes.list(sight, deps.store, { order, after, limit: LISTED + 1 })
        return html`<p class="up"><a href="/installation">Installation</a></p>
<h1>Token scopes</h1>
${orderLinks(seenScopes.SCOPE_ORDERS, order, { words: SCOPE_ORDERS, addressOf: chosen => at(chosen) })}
${found.length === 0 ? (after === undefined ? noScope() : html`<p class="empty">No further scopes.</p>`) : scopeTable(found.slice(0, LISTED))}
${pages(found, after !== undefined, last => at(order, last))}
<p class="same">The same on the command line: ${command('tokenmill', 'scope', 'list')}</p>`
      },
    })
  })
}

export function noScope(): Html {
  return html`<div class="empty"><p>A card has one token in each scope, and a scope belongs to an entity. There is none, so no card can be stored.</p>
<p>${command('tokenmill', 'scope', 'add', '--entity', 'UUID')}</p></div>`
}

export function scopeTable(scopes: readonly seenScopes.ShownScope[]): Html {
  return table(
    [{ title: 'Token scope' }, { title: 'Entity', class: 'second' }, { title: 'Policies' }, { title: 'Added (UTC)' }],
    scopes.map(scope => [id(scope.tokenScope), id(scope.entityId), policiesOf(scope), moment(scope.createdAt)]),
  )
}

function policiesOf(scope: seenScopes.ShownScope): string {
  const { par, networkTokens, requestor, autoProvision, binDigits, keepBilling } = scope
  const made = [par ? 'PAR' : '', networkTokens ? 'network tokens' : ''].filter(Boolean)
  const who = requestor === 'PSP' ? 'the payment provider' : 'the merchant'
  return [
    made.length === 0 ? 'no scheme tokens' : `${made.join(' and ')}, requested by ${who}`,
    ...(autoProvision ? ['made for each new token'] : []),
    `${binDigits} digits of the BIN are shown`,
    keepBilling ? 'billing addresses are kept' : 'billing addresses are not kept',
  ].join('; ')
}

export function captureKeyRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get('/installation/capture-keys', (request, reply) => {
    const after = parameter(request.query, 'after', UUID)
    const at = (last?: seenCaptureKeys.ShownCaptureKey) =>
      last === undefined ? path`/installation/capture-keys` : path`/installation/capture-keys?after=${last.keyId}`
    return answerWhole(deps, request, reply, {
      title: 'Capture keys',
      content: async ({ sight }) => {
        const found = await seenCaptureKeys.list(sight, deps.store, { after, limit: LISTED + 1 })
        return html`<p class="up"><a href="/installation">Installation</a></p>
<h1>Capture keys</h1>
<p>Senders encrypt cards to them. A retired one opens cards until it is destroyed, ${String(seenCaptureKeys.KEPT_DAYS)} days after its last permitted use.</p>
${found.length === 0 ? (after === undefined ? noCaptureKey() : html`<p class="empty">No further capture keys.</p>`) : captureKeyTable(found.slice(0, LISTED))}
${pages(found, after !== undefined, at)}
<p class="same">The same on the command line: ${command('tokenmill', 'capture-key', 'list')}</p>`
      },
    })
  })
}

function noCaptureKey(): Html {
  return html`<div class="empty"><p>Each entity whose senders encrypt cards has a line of capture keys. There is none.</p>
<p>${command('tokenmill', 'capture-key', 'add', 'ALIAS', '--entity', 'UUID')}</p></div>`
}

function captureKeyTable(keys: readonly seenCaptureKeys.ShownCaptureKey[]): Html {
  const at = (ms: number | null) => (ms === null ? '–' : moment(ms))
  return table(
    [
      ...[
        { title: 'Key' },
        { title: 'State', class: 'st' },
        { title: 'Entity', class: 'second' },
        { title: 'Type' },
        { title: 'Made (UTC)' },
      ],
      ...[{ title: 'Last permitted use (UTC)' }, { title: 'Last used (UTC)' }],
    ],
    keys.map(key => [
      html`<code class="id">${key.alias}/${key.number}</code>`,
      keyState(key.state),
      id(key.entityId),
      key.type,
      moment(key.createdAt),
      at(key.destroyedAt ?? key.retiredAt),
      at(key.lastUsedAt),
    ]),
  )
}
