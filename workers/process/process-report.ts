// How a supervisor gets from its worker processes what /metrics and /readyz show: it sends each a message, and each
// replies. Other messages between the two are handled elsewhere.
import type { ChildProcess } from 'node:child_process'
import type { Health } from '../../src/health.ts'
import type { Snapshot } from '../../src/metrics.ts'

/** The requests of a supervisor, and the form of each reply. */
interface Reports {
  metrics: Snapshot
  readiness: string[]
}
type ReportName = keyof Reports

interface ReportRequest {
  report: ReportName
  id: number
}

type ReportReply = { [Name in ReportName]: { reportOf: Name; id: number; content: Reports[Name] } }[ReportName]

/**
 * A busy process replies late, but Prometheus gives up after 10 s. A process that doesn't reply is missing from the
 * metrics.
 */
const REPLY_MS_MAX = 6_000

let lastId = 0

/** In the worker: replies to what its supervisor asks for. */
export function answerSupervisor(health: Health): void {
  process.on('message', (message: Partial<ReportRequest>) => {
    const { report, id = 0 } = message
    const reply = (content: ReportReply) => process.send?.(content)
    if (report === 'metrics') health.snapshot().then(content => reply({ reportOf: report, id, content }))
    else if (report === 'readiness') health.reasons().then(content => reply({ reportOf: report, id, content }))
  })
}

/** In the supervisor: asks a worker; undefined if it doesn't reply. */
export function askWorker<Name extends ReportName>(
  child: ChildProcess,
  report: Name,
): Promise<Reports[Name] | undefined> {
  lastId += 1
  const id = lastId
  return new Promise(resolve => {
    const end = (content: Reports[Name] | undefined) => {
      clearTimeout(late)
      child.off('message', hear)
      child.off('exit', giveUp)
      resolve(content)
    }
    const hear = (message: Partial<ReportReply>) => {
      if (message.reportOf === report && message.id === id) end(message.content as Reports[Name])
    }
    const giveUp = () => end(undefined)
    const late = setTimeout(giveUp, REPLY_MS_MAX)
    child.on('message', hear)
    child.once('exit', giveUp)
    child.send({ report, id } satisfies ReportRequest, error => {
      if (error) giveUp()
    })
  })
}
