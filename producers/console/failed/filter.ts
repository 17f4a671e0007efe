// The filter of failed jobs: parameters of an address, fields of a form, and words of the command line. It holds only what tokenmill
// has made. Moments are written to the base of 36, so that no address has a long row of digits.
import { FAULTS } from '../../../src/errors.ts'
import type { Catalogue } from '../../../src/job/catalogue.ts'
import type { SeenClient } from '../../../src/store/access/seen-clients.ts'
import { type Html, html, type Path, path } from '../html.ts'

export interface Filter {
  kind: string | undefined
  /** The fault's code. */
  code: string | undefined
  clientId: string | undefined
  /** One of `SINCE`, or a moment as `writeMoment` writes it; undefined: all. */
  since: string | undefined
}

const SINCE = {
  '15m': { text: 'the last 15 minutes', ms: 900_000 },
  '1h': { text: 'the last hour', ms: 3_600_000 },
  '24h': { text: 'the last 24 hours', ms: 86_400_000 },
} as const
const isSpan = (since: string): since is keyof typeof SINCE => Object.hasOwn(SINCE, since)

/** Whatever isn't understood is left out: an address may have been typed. */
export function readFilter(catalogue: Catalogue, given: Readonly<Record<string, unknown>>): Filter {
  const text = (name: string, isRight: (value: string) => boolean) => {
    const value = given[name]
    return typeof value === 'string' && isRight(value) ? value : undefined
  }
  return {
    kind: text('kind', kind => catalogue.find(kind) !== undefined),
    code: text('code', code => Object.hasOwn(FAULTS, code)),
    clientId: text('client', client => client !== 'any' && /^[a-z][a-z0-9-]{1,40}$/.test(client)),
    since: text('since', since => isSpan(since) || readMoment(since) !== undefined),
  }
}

/** ms since the epoch; undefined: from the beginning. */
export function sinceOf({ since }: Pick<Filter, 'since'>, now: number): number | undefined {
  if (since === undefined) return undefined
  return isSpan(since) ? now - SINCE[since].ms : readMoment(since)
}

/** The filter with a moment in place of a span that ends now. */
export function fixed(filter: Filter, now: number): Filter {
  const since = sinceOf(filter, now)
  return { ...filter, since: since === undefined ? undefined : writeMoment(since) }
}

export function writeMoment(ms: number): string {
  return ms.toString(36)
}

export function readMoment(text: string): number | undefined {
  return /^[0-9a-z]{8,9}$/.test(text) ? Number.parseInt(text, 36) : undefined
}

export function isFiltered({ kind, code, clientId, since }: Filter): boolean {
  return [kind, code, clientId, since].some(one => one !== undefined)
}

/** The address of the list. `before`: where the page begins. */
export function listPath({ kind, code, clientId, since }: Filter, before = 'first'): Path {
  return path`/failed?kind=${kind ?? 'any'}&code=${code ?? 'any'}&client=${clientId ?? 'any'}&since=${since ?? 'any'}&before=${before}`
}

/** The address of the page of an act on all that the filter matches. */
export function allPath(act: string, { kind, code, clientId, since }: Filter): Path {
  return path`/failed/all/${act}?kind=${kind ?? 'any'}&code=${code ?? 'any'}&client=${clientId ?? 'any'}&since=${since ?? 'any'}`
}

/** The fields that ask for the same jobs, for a form that does something else with them. */
export function hiddenFields({ kind, code, clientId, since }: Filter): Html[] {
  return Object.entries({ kind, code, client: clientId, since }).flatMap(([name, value]) =>
    value === undefined ? [] : [html`<input type="hidden" name="${name}" value="${value}">`],
  )
}

export function filterForm({ kinds }: Catalogue, filter: Filter, clients: readonly SeenClient[]): Html {
  const { kind, code, clientId, since } = filter
  const others = clientId === undefined || clients.some(client => client.clientId === clientId) ? [] : [clientId]
  const known = [
    ...clients.map(client => ({ id: client.clientId, name: client.name })),
    ...others.map(id => ({ id, name: id })),
  ]
  const moment = since === undefined || isSpan(since) ? undefined : since
  return html`<form class="failed-filter" method="get" action="/failed">
${choice('kind', 'Kind', [option('any', 'any', kind === undefined), ...byName(kinds, kind)])}
${choice('code', 'Fault', [option('any', 'any', code === undefined), ...byName(Object.keys(FAULTS), code)])}
${choice('client', 'Client', [
  option('any', 'any', clientId === undefined),
  ...known.map(({ id, name }) => option(id, name, id === clientId)),
])}
${choice('since', 'Failed in', [
  option('any', 'the last 7 days', since === undefined),
  ...Object.entries(SINCE).map(([span, { text }]) => option(span, text, span === since)),
  ...(moment === undefined ? [] : [option(moment, 'the time that was chosen', true)]),
])}
<div class="send"><button type="submit">Show</button>${isFiltered(filter) ? html` <a href="/failed">Show all</a>` : undefined}</div>
</form>`
}

function choice(name: string, label: string, options: readonly Html[]): Html {
  return html`<div><label for="${name}">${label}</label><select id="${name}" name="${name}">${options}</select></div>`
}

const byName = (names: readonly string[], chosen: string | undefined) =>
  names.map(name => option(name, name, name === chosen))

function option(value: string, text: string, isChosen: boolean): Html {
  return isChosen
    ? html`<option value="${value}" selected>${text}</option>`
    : html`<option value="${value}">${text}</option>`
}

/** The filter as options of the command line. */
export function optionsOf(filter: Filter, now: number): string[] {
  const { kind, code, clientId } = filter
  const since = sinceOf(filter, now)
  return [
    ...(kind === undefined ? [] : ['--kind', kind]),
    ...(code === undefined ? [] : ['--fault', code]),
    ...(clientId === undefined ? [] : ['--client', clientId]),
    ...(since === undefined ? [] : ['--since', new Date(since).toISOString()]),
  ]
}
