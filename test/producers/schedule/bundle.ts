// Opens schedules for an installation, as scheduler processes do, and reads their runs.
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { readSystemKey } from '../../../cli/open/system-clients.ts'
import type { ScheduleSettings } from '../../../producers/schedule/deps.ts'
import { openScheduleMetrics, type ScheduleMetrics } from '../../../producers/schedule/metrics.ts'
import { openSchedule, type Schedule } from '../../../producers/schedule/open.ts'
import { type Clock, systemClock } from '../../../src/clock.ts'
import { openRegistry } from '../../../src/metrics.ts'
import * as clients from '../../../src/store/access/clients.ts'
import * as runs from '../../../src/store/report/schedule-runs.ts'
import type { Installation } from '../../support/installation.ts'

export interface OpenedSchedule extends Schedule {
  metrics: ScheduleMetrics
  /** Lines of its log. */
  lines: string[]
  /** How many runs its metric counts under this outcome. */
  counted(outcome: string): Promise<number>
}

export interface Opening {
  clock?: Clock
  settings?: Partial<ScheduleSettings>
}

export async function openScheduleFor(
  installation: Installation,
  { clock = systemClock, settings = {} }: Opening = {},
): Promise<OpenedSchedule> {
  const { vault, queues, credentials, dataDir } = installation
  const own = await clients.find(vault.store, 'scheduler')
  if (!own) throw new Error('the upgrade makes the scheduler')
  const metrics = openScheduleMetrics(openRegistry({ role: 'scheduler' }))
  const lines: string[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const schedule = openSchedule({
    store: vault.store,
    queues,
    signingKey: await readSystemKey(dataDir, 'scheduler'),
    userId: own.userId,
    trusted: { keys: credentials.installationKeys },
    settings: {
      audience: credentials.audience,
      lateMs: 1_800_000,
      keepDays: 400,
      sweepPage: 500,
      webhookLeaseMs: 60_000,
      ...settings,
    },
    clock,
    metrics,
    log: pino({ level: 'info' }, stream),
  })
  await schedule.ready
  const counted = async (outcome: string) => {
    const { values } = await metrics.runs.get()
    return values.find(({ labels }) => labels['outcome'] === outcome)?.value ?? 0
  }
  return { ...schedule, metrics, lines, counted }
}

/** Changes a schedule as if it had been made so many days ago. */
export async function backdate({ vault }: Installation, scheduleId: string, days: number): Promise<void> {
  await vault.store.query({
    text: `update tokenmill.schedule set created_at = now() - make_interval(days => $2) where schedule_id = $1`,
    values: [scheduleId, days],
  })
}

/** The dates of a schedule's runs, the latest first. */
export const runsOf = ({ vault }: Installation, scheduleId: string) => runs.listOf(vault.store, scheduleId, 100)

/** The schedule of the token sweep, which every installation has. */
export const EXPIRY = '7e1f0c2a-5b3d-4c6e-8f90-a1b2c3d4e5f6'
