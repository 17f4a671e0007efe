// Whether all is well: a list of checks, each with a state and a sentence. Commands and pages show it. All checks run
// at the same time; none waits for another.
import { setTimeout } from 'node:timers/promises'
import { askAll, type Check, type Patience, type Question, type State, worstOf } from './check.ts'
import { askBatches } from './checks/batches.ts'
import { askEnvelopes } from './checks/envelopes.ts'
import { askCertificate, askDisk, askKeys, type EndSources } from './checks/files.ts'
import { askLocks } from './checks/locks.ts'
import { askNetworks } from './checks/networks.ts'
import { askProcesses, askScheduler, askWorkers, listProcesses, type ProcessFacts } from './checks/processes.ts'
import { askClock, askQueues, askSchema, askStore, askVaultKeys, type ServerSources } from './checks/servers.ts'
import { askWebhooks } from './checks/webhooks.ts'
import { askBacklog, askFailed, askOutbox, askSchedules, type WorkSources } from './checks/work.ts'

/** What the checks need. */
export type StatusSources = ServerSources & WorkSources & EndSources

export interface Status {
  state: State
  /** RFC 3339. */
  checked_at: string
  checks: Check[]
  /** The processes by host and role; empty if the store can't be asked. */
  processes: ProcessFacts[]
}

/** In the order in which they are shown; docs/on-call.md says when each is a warning and when it is critical. */
export const CHECKS: readonly Question<StatusSources>[] = [
  { name: 'store', ask: askStore, server: 'the store' },
  { name: 'locks', ask: askLocks },
  { name: 'schema', ask: askSchema },
  { name: 'queues', ask: askQueues, server: 'the queue server' },
  { name: 'vault keys', ask: askVaultKeys },
  { name: 'clock', ask: askClock },
  { name: 'workers', ask: askWorkers },
  { name: 'scheduler', ask: askScheduler },
  { name: 'processes', ask: askProcesses },
  { name: 'backlog', ask: askBacklog },
  { name: 'outbox', ask: askOutbox },
  { name: 'batches', ask: askBatches },
  { name: 'networks', ask: askNetworks },
  { name: 'envelopes', ask: askEnvelopes },
  { name: 'webhooks', ask: askWebhooks },
  { name: 'failed jobs', ask: askFailed },
  { name: 'schedules', ask: askSchedules },
  { name: 'keys', ask: askKeys },
  { name: 'certificate', ask: askCertificate },
  { name: 'disk', ask: askDisk },
]

/** How long the list of processes is awaited after the checks, where the store answers. */
const LIST_MS = 500
export const PATIENCE = { firstMs: 1_000, lastMs: 4_000 } as const

export async function readStatus(sources: StatusSources, onFirst?: Patience['onFirst']): Promise<Status> {
  const asked = listProcesses(sources).catch(() => [])
  const checks = await askAll(CHECKS, sources, { ...PATIENCE, ...(onFirst && { onFirst }) })
  const isThere = checks.some(({ name, state }) => name === 'store' && state !== 'critical' && state !== 'unknown')
  const processes = await Promise.race([asked, soon(isThere ? LIST_MS : 0)])
  return { state: worstOf(checks), checked_at: new Date(sources.now).toISOString(), checks, processes }
}

async function soon(ms: number): Promise<[]> {
  // The timer doesn't keep the process alive.
  await setTimeout(ms, undefined, { ref: false })
  return []
}
