// The console's routes without an installation: nothing is asked of the server, so it is given no store and no queues.

import type { ConsoleApp, ConsoleRoutes } from '../../../producers/console/app.ts'
import type { ConsoleDeps } from '../../../producers/console/deps.ts'
import { ROUTES } from '../../../producers/console/routes.ts'
import { openServer } from '../../../producers/console/server/server.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { openLog } from '../../../src/log.ts'

/** `first`: what is to see each route come. */
export async function openRoutes(first: readonly ConsoleRoutes[] = []): Promise<ConsoleApp> {
  // Some routes are there with an OpenID provider only.
  const openid = { name: 'OpenID', issuer: 'https://login.example.com' }
  const deps = { log: openLog('silent'), clock: () => 0, catalogue: CATALOGUE, openid } as unknown as ConsoleDeps
  return openServer(deps, [...first, ...ROUTES], undefined)
}
