// The filters of the list of batches: parameters of its address, and a form. They hold only what tokenmill has made, numbers and
// dates. A batch's id is its sender's choice, so no filter takes one: it must stand in no address.
import type { Listed, ListFilter, ListOrder } from '../../../src/store/batch/batch-list.ts'
import type { SeenClient } from '../../../src/store/console/batch-clients.ts'
import { type Html, html, type Path, path } from '../html.ts'

/** In the order of the form. */
const STATES = {
  open: { state: 'open', text: 'open: neither finished nor cancelled' },
  stalled: { state: 'STALLED', text: 'STALLED' },
  paused: { state: 'PAUSED', text: 'PAUSED' },
  running: { state: 'going', text: 'RUNNING or OPEN' },
  abandoned: { state: 'ABANDONED', text: 'ABANDONED' },
  finished: { state: 'FINISHED', text: 'FINISHED' },
  cancelled: { state: 'CANCELLED', text: 'CANCELLED' },
} as const satisfies Record<string, { state: ListFilter['state']; text: string }>
type StateWord = keyof typeof STATES

const ORDERS: Record<ListOrder, string> = { need: 'what needs somebody first', newest: 'newest first' }

/** What a person asked for, in the words of the address. */
export interface AskedList {
  order: ListOrder
  state: StateWord | undefined
  clientId: string | undefined
  /** Days in UTC, `2026-11-23`; the batches begun on both are listed, too. */
  since: string | undefined
  until: string | undefined
  after: Listed['after']
}

const DAY_MS = 86_400_000

/** Whatever isn't understood is left out: an address may have been typed. */
export function readAsked(query: unknown): AskedList {
  const given = typeof query === 'object' && query !== null ? (query as Record<string, unknown>) : {}
  const text = (name: string, form: RegExp) => {
    const value = given[name]
    return typeof value === 'string' && form.test(value) ? value : undefined
  }
  const day = (name: string) => {
    const value = text(name, /^\d{4}-\d\d-\d\d$/)
    return value !== undefined && Number.isFinite(Date.parse(value)) ? value : undefined
  }
  const state = text('state', /^[a-z]+$/)
  const [, rank, batchNo] = /^(\d)-(\d{1,15})$/.exec(text('after', /./) ?? '') ?? []
  return {
    order: given['order'] === 'newest' ? 'newest' : 'need',
    state: state !== undefined && Object.hasOwn(STATES, state) ? (state as StateWord) : undefined,
    clientId: text('client', /^c[a-z0-9]{25}$/),
    since: day('since'),
    until: day('until'),
    after: batchNo === undefined ? undefined : { rank: Number(rank), batchNo: Number(batchNo) },
  }
}

export function filterOf({ state, clientId, since, until }: AskedList): ListFilter {
  return {
    state: state && STATES[state].state,
    clientId,
    since: since === undefined ? undefined : Date.parse(since),
    until: until === undefined ? undefined : Date.parse(until) + DAY_MS,
  }
}

export function isFiltered({ state, clientId, since, until }: AskedList): boolean {
  return [state, clientId, since, until].some(one => one !== undefined)
}

/** The address of a page of the list. */
export function addressOf({ order, state, clientId, since, until, after }: AskedList): Path {
  const place = after ? `${after.rank}-${after.batchNo}` : 'first'
  return path`/batches?order=${order}&state=${state ?? 'any'}&client=${clientId ?? 'any'}&since=${since ?? 'any'}&until=${until ?? 'any'}&after=${place}`
}

/** The fields that ask for the same list, for a form that does something else with it. */
export function hiddenFields({ order, state, clientId, since, until }: AskedList): Html[] {
  const fields = { order, state, client: clientId, since, until }
  return Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [html`<input type="hidden" name="${name}" value="${value}">`],
  )
}

export function filterForm(asked: AskedList, clients: readonly SeenClient[]): Html {
  const { order, state, clientId, since = '', until = '' } = asked
  const isListed = clientId === undefined || clients.some(client => client.clientId === clientId)
  const all = isListed ? clients : [...clients, { clientId, name: null }]
  return html`<form class="filter" method="get" action="/batches">
<div><label for="state">State</label><select id="state" name="state">${option('', 'any', state === undefined)}${Object.entries(STATES).map(([word, { text }]) => option(word, text, word === state))}</select></div>
<div><label for="client">Client</label><select id="client" name="client">${option('', 'any', clientId === undefined)}${all.map(client => option(client.clientId, client.name ?? client.clientId, client.clientId === clientId))}</select></div>
<div><label for="since">Begun from (UTC)</label><input id="since" name="since" type="date" value="${since}"></div>
<div><label for="until">until</label><input id="until" name="until" type="date" value="${until}"></div>
<div><label for="order">Order</label><select id="order" name="order">${Object.entries(ORDERS).map(([word, text]) => option(word, text, word === order))}</select></div>
<div class="send"><button type="submit">Show</button>${isFiltered(asked) ? html` <a href="/batches">Show all</a>` : undefined}</div>
</form>`
}

function option(value: string, text: string, isChosen: boolean): Html {
  return isChosen
    ? html`<option value="${value}" selected>${text}</option>`
    : html`<option value="${value}">${text}</option>`
}

/** The filter as words of the command line that lists the same, as far as the command has them. */
export function commandOf({ state, clientId, since }: AskedList): string[] {
  const named = state && STATES[state].state
  return [
    ...['tokenmill', 'batch', 'list'],
    ...(named && named !== 'open' ? ['--state', named === 'going' ? 'RUNNING' : named] : []),
    ...(clientId === undefined ? [] : ['--client', clientId]),
    ...(since === undefined ? [] : ['--since', since]),
  ]
}
