// What the scheduler's process is composed of beside the core: what the features have done every hour, and the figures of the
// store that they show. The entry of the process hands both down.
import type { ReportFiles } from '../src/report/files/files.ts'
import * as confirmations from '../src/store/access/confirmations.ts'
import * as actNonces from '../src/store/person/act-nonces.ts'
import * as failedActs from '../src/store/person/failed-acts.ts'
import * as schemeIntents from '../src/store/provider/scheme-intents.ts'
import * as schemeTokens from '../src/store/provider/scheme-tokens.ts'
import { inPages } from '../src/store/retention.ts'
import { sweepThreeDs } from '../src/store/three-ds/three-ds-retention.ts'
import * as watched from '../src/store/watch/watched.ts'
import { WORK_MINUTES } from '../src/store/watch/work-minutes.ts'
import { auditMeasures } from './audit/measures.ts'
import type { Chore } from './process/housekeeping.ts'
import type { OpenMeasures } from './process/installation-metrics.ts'
import { schemeMeasures } from './provider/measures.ts'
import { sweepReports } from './report/sweep.ts'
import { keyMeasures } from './reseal/measures.ts'
import { webhookMeasures } from './webhook/measures.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** `files`: where reports are; undefined on a host without a place for them. */
export const openChores = (files: ReportFiles | undefined): Chore[] => [
  {
    name: 'calls to networks older than receipts are kept, and provisionings that have ended',
    async run({ store }, { now, receiptDays }) {
      const before = now - receiptDays * DAY_MS
      await inPages(page => schemeIntents.eraseOld(store, before, page))
      await inPages(page => schemeTokens.eraseOld(store, before, page))
    },
  },
  { name: 'confirmations of second operators', run: ({ store }) => confirmations.expire(store) },
  { name: 'signed acts', run: ({ store }, { now }) => actNonces.eraseOld(store, now - HOUR_MS) },
  { name: 'acts on failed jobs', run: ({ store }, { now }) => failedActs.eraseOld(store, now - 2 * DAY_MS) },
  { name: 'authentications', run: ({ store }, { now }) => sweepThreeDs(store, now) },
  {
    name: 'minutes of how the installation was',
    run: ({ store }, { now }) => watched.eraseOld(store, now - WORK_MINUTES.keptDays * DAY_MS),
  },
  { name: 'reports', run: (deps, { now, reportDays }) => sweepReports(deps, files, reportDays, now) },
]

/** They are asked in this order. */
export const MEASURES: readonly OpenMeasures[] = [schemeMeasures, webhookMeasures, auditMeasures, keyMeasures]
