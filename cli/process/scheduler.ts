// Opens the schedule in the scheduler's process: its key, its user, and the keys that verify results. `tokenmill
// schedule` changes what is scheduled.
import type { ScheduleDeps } from '../../producers/schedule/deps.ts'
import { openSchedule } from '../../producers/schedule/open.ts'
import { ConfigError } from '../../src/config.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import { importPublicJwk } from '../../src/vault/client-key.ts'
import type { Session } from '../open/open.ts'
import { readSystemKey } from '../open/system-clients.ts'

/** Ticks, and the answers to `scheduler` and to `worker`. */
export const SCHEDULE_LISTENERS = 3

/** A page gives one worker process some seconds of work, and takes some hundred kilobytes in a queue. */
const SWEEP_PAGE = 500

export async function startSchedule(
  { config, lifetime }: Session,
  opened: Pick<ScheduleDeps, 'store' | 'queues' | 'clock' | 'log' | 'metrics'>,
): Promise<void> {
  const signingKey = await readSystemKey(config.dataDir, 'scheduler')
  const own = await clients.find(opened.store, 'scheduler')
  if (!own)
    throw new ConfigError('DATABASE_URL: the upgrade of the database is incomplete; run `tokenmill schema upgrade`')
  const keys = await signingKeys.findPublic(opened.store)
  const schedule = openSchedule({
    ...opened,
    signingKey,
    userId: own.userId,
    installationKeys: new Map(
      keys.map(({ kid, alg, publicJwk }) => [kid, { alg, publicKey: importPublicJwk(publicJwk).key }]),
    ),
    settings: {
      audience: config.audience,
      lateMs: config.scheduleLateMs,
      keepDays: config.reportDays,
      sweepPage: SWEEP_PAGE,
    },
  })
  lifetime.onClose('schedule', schedule.close)
  await schedule.ready
}
