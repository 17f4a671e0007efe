// Every route of the console. A path that isn't here answers as what a person may not see.

import { actRoutes } from './acts/act-routes.ts'
import { verdictRoutes } from './acts/verdict.ts'
import type { ConsoleRoutes } from './app.ts'
import { batchActRoutes } from './batches/act.ts'
import { batchRoutes } from './batches/batch.ts'
import { csvRoutes } from './batches/csv.ts'
import { listRoutes } from './batches/list.ts'
import { refusedRoutes } from './batches/refused.ts'
import { jobRoutes } from './explain/job.ts'
import { searchRoutes } from './explain/search.ts'
import { tokenRoutes } from './explain/token.ts'
import { failedActRoutes } from './failed/act.ts'
import { failedCopyRoutes } from './failed/copy.ts'
import { failedListRoutes } from './failed/list.ts'
import { TICKED } from './failed/ticked.ts'
import { nowRoutes } from './now/now.ts'
import { assetRoutes } from './server/assets.ts'
import { passkeyRoutes } from './session/passkeys.ts'
import { sessionRoutes } from './session/sessions.ts'
import { signInRoutes } from './session/sign-in.ts'
import { welcomeRoutes } from './session/welcome.ts'

export const ROUTES: readonly ConsoleRoutes[] = [
  assetRoutes,
  signInRoutes,
  welcomeRoutes,
  sessionRoutes,
  passkeyRoutes,
  nowRoutes,
  listRoutes,
  batchRoutes,
  refusedRoutes,
  csvRoutes,
  ...batchActRoutes,
  failedListRoutes,
  failedCopyRoutes,
  ...failedActRoutes,
  actRoutes(TICKED),
  verdictRoutes,
  searchRoutes,
  jobRoutes,
  tokenRoutes,
]
