// The filter of the audit: parameters of an address, a form, and words of the command line. It holds only what tokenmill has made,
// names of accounts without long numbers, and days. A subject may be a sender's text, so it is posted, and an address names a row.
import type { AuditFilter } from '../../../src/store/access/audit-list.ts'
import type { ActorChoice } from '../../../src/store/console/audit/choices.ts'
import { type Html, html, type Path, path } from '../html.ts'
import { isDay } from '../reports/filters.ts'

/** What a person asked for, in the words of the address. */
export interface AskedAudit extends Pick<AuditFilter, 'actor' | 'action' | 'outcome' | 'like'> {
  /** Days in UTC, `2026-11-23`; both are listed, too. */
  since: string | undefined
  until: string | undefined
  /** The last row of the page before. */
  after: number | undefined
}

const DAY_MS = 86_400_000
const OUTCOMES = ['done', 'refused', 'failed'] as const
const OURS = /^(person:[0-9a-f-]{36}|client:[a-z][a-z0-9-]{1,40}|[a-z-]{1,20})$/
const ACCOUNT = /^[a-z]{1,20}:[A-Za-z0-9_. -]{1,64}$/

/** Whether an actor may stand in an address. */
const isPlain = (actor: string) => OURS.test(actor) || (ACCOUNT.test(actor) && !/\d{8}/.test(actor))

/** Whatever isn't understood is left out: an address may have been typed. */
export function readAsked(query: unknown): AskedAudit {
  const given = typeof query === 'object' && query !== null ? (query as Record<string, unknown>) : {}
  const text = (name: string, isRight: (value: string) => boolean) => {
    const value = given[name]
    return typeof value === 'string' && value !== 'any' && isRight(value) ? value : undefined
  }
  const day = (name: string) => text(name, isDay)
  const row = (name: string) => {
    const value = text(name, one => /^[1-9]\d{0,14}$/.test(one))
    return value === undefined ? undefined : Number(value)
  }
  return {
    actor: text('who', isPlain),
    action: text('act', value => /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(value) && value.length <= 64),
    outcome: OUTCOMES.find(one => one === given['outcome']),
    since: day('since'),
    until: day('until'),
    like: row('like'),
    after: row('after'),
  }
}

export function filterOf({ actor, action, outcome, like, since, until }: AskedAudit): AuditFilter {
  return {
    actor,
    action,
    outcome,
    like,
    since: since === undefined ? undefined : Date.parse(since),
    until: until === undefined ? undefined : Date.parse(until) + DAY_MS,
  }
}

export function isFiltered({ actor, action, outcome, since, until, like }: AskedAudit): boolean {
  return [actor, action, outcome, since, until, like].some(one => one !== undefined)
}

/** The address of the list. */
export function addressOf({ actor, action, outcome, since, until, like, after }: Partial<AskedAudit>): Path {
  return path`/audit?who=${actor ?? 'any'}&act=${action ?? 'any'}&outcome=${outcome ?? 'any'}&since=${since ?? 'any'}&until=${until ?? 'any'}&like=${like ?? 'any'}&after=${after ?? 'any'}`
}

/** The fields that ask for the same rows, for a form that does something else with them. */
export function hiddenFields({ actor, action, outcome, since, until, like }: AskedAudit): Html[] {
  const fields = { who: actor, act: action, outcome, since, until, like }
  return Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [html`<input type="hidden" name="${name}" value="${value}">`],
  )
}

export interface Choices {
  actors: readonly ActorChoice[]
  actions: readonly string[]
}

export function filterForm(asked: AskedAudit, { actors, actions }: Choices): Html {
  const { actor, action, outcome, since = '', until = '', like } = asked
  const offered = actors.filter(one => isPlain(one.actor))
  const others = offered.some(one => one.actor === actor) || actor === undefined ? [] : [{ actor, name: null }]
  return html`<form class="filter" method="get" action="/audit">
${like === undefined ? undefined : html`<input type="hidden" name="like" value="${like}">`}
<div><label for="who">Who</label><select id="who" name="who">${option('any', 'anybody', actor === undefined)}${groups([...offered, ...others], actor)}</select></div>
<div><label for="act">Act</label><select id="act" name="act">${option('any', 'any', action === undefined)}${withChosen(actions, action).map(one => option(one, one, one === action))}</select></div>
<div><label for="outcome">Outcome</label><select id="outcome" name="outcome">${option('any', 'any', outcome === undefined)}${OUTCOMES.map(one => option(one, one, one === outcome))}</select></div>
<div><label for="since">From (UTC)</label><input id="since" name="since" type="date" value="${since}"></div>
<div><label for="until">until</label><input id="until" name="until" type="date" value="${until}"></div>
<div class="send"><button type="submit">Show</button>${isFiltered(asked) ? html` <a href="/audit">Show all</a>` : undefined}</div>
</form>`
}

const withChosen = (all: readonly string[], chosen: string | undefined) =>
  chosen === undefined || all.includes(chosen) ? all : [...all, chosen]

const GROUPS: Record<string, string> = { person: 'People', client: 'Clients', cli: 'Accounts', machine: 'Accounts' }

/** Who acted, by sort: people and clients by their names. */
function groups(actors: readonly ActorChoice[], chosen: string | undefined): Html[] {
  const bySort = Map.groupBy(actors, ({ actor }) => GROUPS[actor.split(':')[0] ?? ''] ?? 'tokenmill itself')
  return [...new Set([...Object.values(GROUPS), 'tokenmill itself'])].flatMap(sort => {
    const named = (bySort.get(sort) ?? []).map(({ actor, name }) => ({ actor, text: name ?? shortOf(actor) }))
    const options = named.toSorted((a, b) => (a.text < b.text ? -1 : 1))
    if (options.length === 0) return []
    return [
      html`<optgroup label="${sort}">${options.map(one => option(one.actor, one.text, one.actor === chosen))}</optgroup>`,
    ]
  })
}

const shortOf = (actor: string) => (actor.includes(':') ? actor.slice(actor.indexOf(':') + 1) : actor)

function option(value: string, text: string, isChosen: boolean): Html {
  return isChosen
    ? html`<option value="${value}" selected>${text}</option>`
    : html`<option value="${value}">${text}</option>`
}

/** The filter as options of the command line. `subject`: that of the row `like`, as it may be shown. */
export function commandOf({ actor, action, outcome, since, until }: AskedAudit, subject: string | undefined): string[] {
  const before = until === undefined ? undefined : new Date(Date.parse(until) + DAY_MS).toISOString().slice(0, 10)
  const options = { actor, action, subject, outcome, since, until: before }
  return [
    ...['tokenmill', 'audit', 'list'],
    ...Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value])),
  ]
}
