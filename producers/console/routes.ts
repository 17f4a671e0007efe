// Every route of the console. A path that isn't here answers as what a person may not see.

import { verdictRoutes } from './acts/verdict.ts'
import type { ConsoleRoutes } from './app.ts'
import { batchActRoutes } from './batches/act.ts'
import { batchRoutes } from './batches/batch.ts'
import { listRoutes } from './batches/list.ts'
import { jobRoutes } from './explain/job.ts'
import { searchRoutes } from './explain/search.ts'
import { tokenRoutes } from './explain/token.ts'
import { assetRoutes } from './server/assets.ts'
import { sessionRoutes } from './session/sessions.ts'
import { signInRoutes } from './session/sign-in.ts'
import { welcomeRoutes } from './session/welcome.ts'

export const ROUTES: readonly ConsoleRoutes[] = [
  assetRoutes,
  signInRoutes,
  welcomeRoutes,
  sessionRoutes,
  listRoutes,
  batchRoutes,
  batchActRoutes,
  verdictRoutes,
  searchRoutes,
  jobRoutes,
  tokenRoutes,
]
