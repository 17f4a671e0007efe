// The pages that these tests open: every GET route of the console. A route of a fixed path is opened as it is; one with parts
// that change needs a row here that says which of its pages are opened.

import type { ConsoleApp } from '../../../../producers/console/app.ts'
import { KIND } from '../../../workers/act/failed-copies.ts'
import { openRoutes } from '../open-routes.ts'
import type { World } from './world.ts'

/** Routes that are no pages: where the others begin, the files of every page, and the streams of live ones. */
const NO_PAGE = /^\/$|\.(css|js|svg|csv)$|\/(live|again)$/

/** A route with parts that change → its pages with the data of world.ts. */
export const PARTED: Readonly<Record<string, (world: World) => string[]>> = {
  '/batches/:no': world => [world.running, world.paused, world.stalled, world.finished].map(no => `/batches/${no}`),
  '/batches/:no/refused': world => [`/batches/${world.running}/refused`],
  '/batches/:no/:act': world => [
    ...[`/batches/${world.running}/note`, `/batches/${world.running}/cancel`, `/batches/${world.finished}/pause`],
  ],
  '/explain/jobs/:id': world => [world.job, world.refusedJob],
  '/explain/tokens/:id': world => [world.token],
  '/explain/batches/:no': world => [`/explain/batches/${world.running}`],
  '/failed/:kind/:id': world => [world.copy],
  '/failed/:kind/:id/:act': world => [`${world.copy}/retry`],
  '/failed/all/:act': () => ['/failed/all/retry?kind=report', '/failed/all/retry?kind=token-create'],
  '/failed/ticked/:act': ({ ticked }) => [`/failed/ticked/retry?kind=${KIND}${ticked.map(id => `&id=${id}`).join('')}`],
  '/reports/schedules/:id': world => [world.schedule],
  '/reports/schedules/:id/:act': world => [`${world.schedule}/run`],
  '/reports/runs/:id/:date/:entity': world => [world.failedRun, world.madeRun],
  '/audit/:id': world => [world.auditRow],
  '/people/:id': world => [`/people/${world.person}`],
  '/people/:id/change': world => [`/people/${world.person}/change`],
  '/people/:id/link': world => [`/people/${world.person}/link`],
  '/people/:id/revoke': world => [`/people/${world.person}/revoke`],
  '/people/invites/:id/revoke': world => [`/people/invites/${world.invite}/revoke`],
  '/installation/clients/:client': world => [`/installation/clients/${world.client}`],
  '/identities/:identity/disconnect': world => [`/identities/${world.identity}/disconnect`],
  '/acts/:nonce': world => world.nonces.map(nonce => `/acts/${nonce}`),
  '/passkeys/acts/:nonce': world => world.added.slice(1, 3).map(nonce => `/passkeys/acts/${nonce}`),
  '/passkeys/:handle/remove': world => [world.removal],
  '/welcome/:nonce': world => [`/welcome/${world.enrolled}`],
}

/** Pages beside those of the routes: filters that find nothing, and what doesn't exist. */
const MORE = [
  '/batches?state=abandoned',
  '/failed?kind=token-create',
  `/failed?kind=${KIND}`,
  '/failed/ticked/retry?kind=report',
  '/people?revoked=yes',
  '/nowhere',
  '/batches/999999999',
  '/sign-in?enrolled=',
]

/** The path templates of all routes of the method. */
export async function listRoutes(method = 'GET'): Promise<string[]> {
  const found: string[] = []
  const note = (app: ConsoleApp) => {
    app.addHook('onRoute', route => {
      if (route.method === method) found.push(route.url)
    })
  }
  await (await openRoutes([note])).close()
  return found
}

/** The paths of all pages, and of what there is to add for the routes that have none. */
export function pagesOf(routes: readonly string[], world: World): { paths: string[]; missing: string[] } {
  const own = routes.filter(route => !NO_PAGE.test(route))
  const missing = own
    .filter(route => route.includes(':') && PARTED[route] === undefined)
    .map(
      route =>
        `GET ${route} is opened by no test of the looks. Add a row for it to PARTED (test/producers/console/looks/pages.ts), and to world.ts the data that its page shows.`,
    )
  const paths = own.flatMap(route => PARTED[route]?.(world) ?? (route.includes(':') ? [] : [route]))
  return { paths: [...paths, ...MORE], missing }
}
