// Every route of the console. A path that isn't here answers as what a person may not see.

import { verdictRoutes } from './acts/verdict.ts'
import type { ConsoleRoutes } from './app.ts'
import { batchActRoutes } from './batches/act.ts'
import { batchRoutes } from './batches/batch.ts'
import { listRoutes } from './batches/list.ts'
import { nowRoutes } from './now/now.ts'
import { assetRoutes } from './server/assets.ts'
import { sessionRoutes } from './session/sessions.ts'
import { signInRoutes } from './session/sign-in.ts'
import { welcomeRoutes } from './session/welcome.ts'

export const ROUTES: readonly ConsoleRoutes[] = [
  assetRoutes,
  signInRoutes,
  welcomeRoutes,
  sessionRoutes,
  nowRoutes,
  listRoutes,
  batchRoutes,
  batchActRoutes,
  verdictRoutes,
]
