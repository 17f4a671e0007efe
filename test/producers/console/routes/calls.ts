// A call of every route of the console, with the ids of something in each of its parts and fields. A route that is new needs a row
// here, so that no test that goes through all routes leaves it out. Streams and CSV are routes like others.
import { wordOf } from '../../../../producers/console/acts/subject.ts'
import type { ActName } from '../../../../src/job/system/act.ts'
import { BATCH_ACTS } from '../../../../src/job/system/batch-act.ts'
import { FAILED_ACTS } from '../../../../src/job/system/failed-act.ts'
import { SCHEDULE_ACTS } from '../../../../src/job/system/schedule-act.ts'
import type { Answer, ConsoleBundle } from '../bundle.ts'
import { openListener } from '../live/listen.ts'
import { listRoutes } from '../looks/pages.ts'

/** What the parts of addresses and the fields of forms name: one of each, real or made up. */
export interface Names {
  batch: string
  batchId: string
  reference: string
  kind: string
  copy: string
  job: string
  token: string
  schedule: string
  date: string
  entity: string
  audit: string
  person: string
  invite: string
  client: string
  identity: string
  act: string
  added: string
  enrolled: string
  passkey: string
  session: string
  flow: string
}

export interface Call {
  method: 'GET' | 'POST'
  route: string
  path: string
  form?: Record<string, string>
}

/** Of a part that says what is done. */
type Acts = Readonly<Record<string, readonly string[]>>
const wordsOf = (rows: object) => Object.keys(rows).map(name => wordOf(name as ActName))
const ACTS: Acts = {
  '/batches/:no/:act': wordsOf(BATCH_ACTS),
  '/failed/:kind/:id/:act': wordsOf(FAILED_ACTS),
  '/failed/all/:act': wordsOf(FAILED_ACTS),
  '/failed/ticked/:act': wordsOf(FAILED_ACTS),
  '/reports/schedules/:id/:act': wordsOf(SCHEDULE_ACTS),
}

/** The parts of a route, by the route without its last word where that is one of `LAST`. */
const PARTS: Readonly<Record<string, (names: Names) => Record<string, string>>> = {
  '/batches/:no': ({ batch }) => ({ no: batch }),
  '/batches/:no/refused': ({ batch }) => ({ no: batch }),
  '/batches/:no/:act': ({ batch }) => ({ no: batch }),
  '/explain/batches/:no': ({ batch }) => ({ no: batch }),
  '/explain/jobs/:id': ({ job }) => ({ id: job }),
  '/explain/tokens/:id': ({ token }) => ({ id: token }),
  '/failed/:kind/:id': ({ kind, copy }) => ({ kind, id: copy }),
  '/failed/:kind/:id/:act': ({ kind, copy }) => ({ kind, id: copy }),
  '/failed/all/:act': () => ({}),
  '/failed/ticked/:act': () => ({}),
  '/reports/schedules/:id': ({ schedule }) => ({ id: schedule }),
  '/reports/schedules/:id/:act': ({ schedule }) => ({ id: schedule }),
  '/reports/runs/:id/:date/:entity': ({ schedule, date, entity }) => ({ id: schedule, date, entity }),
  '/audit/:id': ({ audit }) => ({ id: audit }),
  '/people/:id': ({ person }) => ({ id: person }),
  '/people/:id/change': ({ person }) => ({ id: person }),
  '/people/:id/link': ({ person }) => ({ id: person }),
  '/people/:id/revoke': ({ person }) => ({ id: person }),
  '/people/invites/:id/revoke': ({ invite }) => ({ id: invite }),
  '/installation/clients/:client': ({ client }) => ({ client }),
  '/identities/:identity/disconnect': ({ identity }) => ({ identity }),
  '/acts/:nonce': ({ act }) => ({ nonce: act }),
  '/passkeys/acts/:nonce': ({ added }) => ({ nonce: added }),
  '/passkeys/:handle/remove': ({ passkey }) => ({ handle: passkey }),
  '/welcome/:nonce': ({ enrolled }) => ({ nonce: enrolled }),
}
const LAST = /\/(begin|csv|again|live)$/

/** Queries by which a route of a fixed path, or one of a selection, names something. */
const QUERIES: Readonly<Record<string, (names: Names) => string[]>> = {
  '/batches': ({ batch, client }) => [
    ...[`client=${client}`, 'order=newest', 'state=open', `after=4-${batch}`, `order=newest&after=0-${batch}`],
  ],
  '/batches/:no/refused': () => ['after=0-1'],
  '/audit': ({ audit, person }) => [`like=${audit}`, `after=${audit}`, `who=person:${person}`, 'act=batch.note'],
  '/failed': ({ kind, client }) => [`kind=${kind}`, `kind=${kind}&client=${client}`],
  '/failed/all/:act': ({ kind, client }) => [`kind=${kind}`, `kind=${kind}&client=${client}`],
  '/failed/ticked/:act': ({ kind, copy }) => [`kind=${kind}&id=${copy}`],
  '/explain/jobs/:id': () => [`job=j_${'a'.repeat(43)}`],
  '/people': () => ['revoked=yes'],
  '/reports': () => ['state=FAILED'],
  '/sign-in': ({ batch }) => [`to=/batches/${batch}`],
  '/openid/callback': () => ['code=x&state=y'],
  '/installation/clients': () => ['order=name'],
}

const NOTHING: Record<string, string> = {}
/** An act's form, and what each kind of act takes. `seen` has a form that is right and fits nothing. */
const ACT = { seen: 'A'.repeat(43), reason: 'why', nonce: 'n', proof: '' }
const LINK_KEY = { lookup_hash: 'A'.repeat(43), public_key: 'A'.repeat(43) }
const RIGHTS = { role_VIEWER: 'on', sees: 'all', entities: '' }
const UP_TO = Date.UTC(2026, 0, 1).toString(36)

/** The fields that a POST takes: by its route, without a last word `begin`. */
const FORMS: Readonly<Record<string, (names: Names) => Record<string, string>>> = {
  '/batches/:no/:act': () => ACT,
  '/batches/csv': ({ client }) => ({ client }),
  '/batches/:no/refused/csv': () => NOTHING,
  '/failed/:kind/:id/:act': () => ACT,
  '/failed/all/:act': ({ kind, client }) => ({ ...ACT, kind, client, count: '1', up_to: UP_TO }),
  '/failed/ticked/:act': ({ kind, copy }) => ({ ...ACT, kind, ids: copy }),
  '/failed/csv': ({ kind, client }) => ({ kind, client }),
  '/reports/schedules/:id/:act': ({ date }) => ({ ...ACT, date }),
  '/people/invite': () => ({ ...ACT, ...RIGHTS, ...LINK_KEY, name: 'somebody' }),
  '/people/:id/change': () => ({ ...ACT, ...RIGHTS }),
  '/people/:id/link': () => ({ ...ACT, ...LINK_KEY }),
  '/people/:id/revoke': () => ACT,
  '/people/invites/:id/revoke': () => ACT,
  '/audit/csv': ({ audit }) => ({ like: audit }),
  '/audit/find': ({ batchId }) => ({ what: batchId }),
  '/search': ({ reference }) => ({ what: reference }),
  '/sessions/end': ({ session }) => ({ session }),
  '/sessions/end-all': () => NOTHING,
  '/sign-out': () => NOTHING,
  '/passkeys/add': ({ added }) => ({ nonce: added, proof: '' }),
  '/passkeys/add/touch': ({ added }) => ({ nonce: added }),
  '/passkeys/:handle/remove': ({ added }) => ({ nonce: added, proof: '' }),
  '/identities/find': () => NOTHING,
  '/identities/connect': ({ flow }) => ({ flow, nonce: 'n', proof: '' }),
  '/identities/:identity/disconnect': () => ({ nonce: 'n', proof: '' }),
  '/openid/begin': () => ({ to: '/' }),
  '/sign-in': () => ({ proof: '', to: '/' }),
  '/welcome': ({ enrolled }) => ({ nonce: enrolled, proof: '' }),
  '/display/open': ({ session }) => ({ link: session }),
}

/** Routes that end the session in which they are asked. */
export const ENDING: readonly string[] = ['/sessions/end-all', '/sign-out']
export const isStream = ({ path }: Pick<Call, 'path'>) => /\/live$/.test(path)
/** Asked by a module, which sends JSON. */
export const isJson = ({ path }: Pick<Call, 'path'>) => /\/(begin|touch)$/.test(path) && path !== '/openid/begin'

export type Route = Pick<Call, 'method' | 'route'>

export async function everyRoute(): Promise<Route[]> {
  const [get, post] = await Promise.all([listRoutes('GET'), listRoutes('POST')])
  return [
    ...get.map(route => ({ method: 'GET' as const, route })),
    ...post.map(route => ({ method: 'POST' as const, route })),
  ]
}

/** Routes that no row tells how to call. */
export function withoutRow(routes: readonly Route[]): string[] {
  const isMissing = ({ method, route }: Route) =>
    (route.includes(':') && !PARTS[whole(route)]) || (method === 'POST' && !FORMS[formOf(route)])
  return routes
    .filter(isMissing)
    .map(
      ({ method, route }) =>
        `${method} ${route} is called by no test. Say in PARTS and FORMS (test/producers/console/routes/calls.ts) how.`,
    )
}

/** Rows of routes that aren't there. */
export function withoutRoute(routes: readonly Route[]): string[] {
  const known = new Set(routes.flatMap(({ route }) => [route, whole(route), formOf(route)]))
  return [...Object.keys(PARTS), ...Object.keys(QUERIES), ...Object.keys(FORMS)].filter(row => !known.has(row))
}

/** Every call of the route, with these names. */
export function callsOf({ method, route }: Route, names: Names): Call[] {
  const row = whole(route)
  const parts = PARTS[row]?.(names) ?? {}
  const paths = (ACTS[row] ?? ['']).map(act =>
    route.replace(/:(\w+)/g, (_whole, part: string) => (part === 'act' ? act : encodeURIComponent(parts[part] ?? ''))),
  )
  const form = FORMS[formOf(route)]
  if (method === 'POST') return paths.map(path => ({ method, route, path, form: form?.(names) ?? NOTHING }))
  const queries = ['', ...(QUERIES[route]?.(names) ?? []).map(query => `?${query}`)]
  return paths.flatMap(path => queries.map(query => ({ method, route, path: `${path}${query}` })))
}

/** Asks as a browser does: a form, JSON where a module asks, and of a stream what it says first. */
export function openAsk({ call, origin }: Pick<ConsoleBundle, 'call' | 'origin'>) {
  const { listen } = openListener(() => origin)
  return async (one: Call, cookie: string): Promise<Answer> => {
    const { method, path, form } = one
    if (isStream(one)) {
      const stream = await listen(cookie, { path, isRead: false })
      const { status, headers, response } = stream
      let text = ''
      for await (const part of response) {
        text += String(part)
        if (text.includes('data: ')) break
      }
      stream.stop()
      return { status, headers, text }
    }
    if (form === undefined) return call(method, path, { cookie })
    return call(method, path, isJson(one) ? { cookie, json: form } : { cookie, form })
  }
}

const whole = (route: string) => (PARTS[route] ? route : route.replace(LAST, ''))
const formOf = (route: string) => route.replace(/\/begin$/, name => (FORMS[route] ? name : ''))
