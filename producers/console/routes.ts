// Every route of the console. A path that isn't here answers as what a person may not see.

import { passkeyRoutes } from './account/passkeys.ts'
import { sessionRoutes } from './account/sessions.ts'
import { welcomeRoutes } from './account/welcome.ts'
import { actRoutes } from './acts/act-routes.ts'
import type { ConsoleRoutes } from './app.ts'
import { auditCsvRoutes } from './audit/csv.ts'
import { auditRoutes } from './audit/list.ts'
import { auditRowRoutes } from './audit/row.ts'
import { batchActRoutes } from './batches/act.ts'
import { batchRoutes } from './batches/batch.ts'
import { csvRoutes } from './batches/csv.ts'
import { listRoutes } from './batches/list.ts'
import { refusedRoutes } from './batches/refused.ts'
import { displayRoutes } from './display/display.ts'
import { jobRoutes } from './explain/job.ts'
import { searchRoutes } from './explain/search.ts'
import { tokenRoutes } from './explain/token.ts'
import { failedActRoutes } from './failed/act.ts'
import { failedCopyRoutes } from './failed/copy.ts'
import { failedCsvRoutes } from './failed/csv.ts'
import { failedListRoutes } from './failed/list.ts'
import { TICKED } from './failed/ticked.ts'
import { clientRoutes } from './installation/clients.ts'
import { installationRoutes } from './installation/installation.ts'
import { captureKeyRoutes, scopeRoutes } from './installation/lists.ts'
import { nowRoutes } from './now/now.ts'
import { connectRoutes } from './openid/connect.ts'
import { disconnectRoutes } from './openid/disconnect.ts'
import { openIdRoutes } from './openid/sign-in.ts'
import { peopleActRoutes } from './people/acts.ts'
import { peopleRoutes } from './people/list.ts'
import { personRoutes } from './people/person.ts'
import { scheduleActRoutes } from './reports/act.ts'
import { reportListRoutes } from './reports/list.ts'
import { runRoutes } from './reports/run.ts'
import { scheduleRoutes } from './reports/schedule.ts'
import { assetRoutes } from './server/assets.ts'
import { signInRoutes } from './session/sign-in.ts'
import { verdictRoutes } from './verdict.ts'

export const ROUTES: readonly ConsoleRoutes[] = [
  assetRoutes,
  signInRoutes,
  welcomeRoutes,
  sessionRoutes,
  passkeyRoutes,
  openIdRoutes,
  connectRoutes,
  disconnectRoutes,
  nowRoutes,
  listRoutes,
  batchRoutes,
  refusedRoutes,
  csvRoutes,
  batchActRoutes,
  failedListRoutes,
  failedCopyRoutes,
  failedCsvRoutes,
  ...failedActRoutes,
  peopleRoutes,
  personRoutes,
  ...peopleActRoutes,
  reportListRoutes,
  scheduleRoutes,
  runRoutes,
  scheduleActRoutes,
  actRoutes(TICKED),
  verdictRoutes,
  searchRoutes,
  jobRoutes,
  tokenRoutes,
  auditRoutes,
  auditRowRoutes,
  auditCsvRoutes,
  installationRoutes,
  clientRoutes,
  scopeRoutes,
  captureKeyRoutes,
  displayRoutes,
]
