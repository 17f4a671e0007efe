// Whether everything is well: a list of checks, each with a state and what it says. A value for whoever shows it; the
// checks are asked at once, and none waits for another.
import { askAll, type Check, type Question, type State, worstOf } from './check.ts'
import { askBatches } from './checks/batches.ts'
import { askEnvelopes } from './checks/envelopes.ts'
import { askCertificate, askDisk, askKeys, type EndSources } from './checks/files.ts'
import { askNetworks } from './checks/networks.ts'
import { askProcesses, askScheduler, askWorkers, listProcesses, type ProcessFacts } from './checks/processes.ts'
import { askClock, askQueues, askSchema, askStore, askVaultKeys, type ServerSources } from './checks/servers.ts'
import { askWebhooks } from './checks/webhooks.ts'
import { askBacklog, askFailed, askOutbox, askSchedules, type WorkSources } from './checks/work.ts'

/** What is opened is opened once, at the first use. */
export type StatusSources = ServerSources & WorkSources & EndSources

export interface Status {
  state: State
  /** RFC 3339. */
  checked_at: string
  checks: Check[]
  /** By host and role; none where the store can't be asked. */
  processes: ProcessFacts[]
}

/** In the order in which they are shown; docs/on-call.md says when each is a warning and when it is critical. */
export const CHECKS: readonly Question<StatusSources>[] = [
  { name: 'store', ask: askStore, server: 'the store' },
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

const PROCESSES_MS = 1_000

export async function readStatus(sources: StatusSources): Promise<Status> {
  const [checks, processes] = await Promise.all([askAll(CHECKS, sources), listWithin(PROCESSES_MS, sources)])
  return { state: worstOf(checks), checked_at: new Date(sources.now).toISOString(), checks, processes }
}

function listWithin(ms: number, sources: StatusSources): Promise<ProcessFacts[]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<ProcessFacts[]>(resolve => {
    timer = setTimeout(resolve, ms, [])
  })
  return Promise.race([listProcesses(sources).catch(() => []), late]).finally(() => clearTimeout(timer))
}
