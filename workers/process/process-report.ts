// How a supervisor learns of its worker processes what /metrics and /readyz show of them: it asks each by a message, and
// each answers for itself. The other messages between the two are not its concern.
import type { ChildProcess } from 'node:child_process'
import type { Health } from '../../src/health.ts'
import type { Snapshot } from '../../src/metrics.ts'

/** What a supervisor asks for, and the form of each reply. */
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

/** A busy process replies late, but Prometheus gives up after 10 s; one that doesn't reply is shown by its absence. */
const REPLY_MS_MAX = 6_000

let lastId = 0

/** The worker's side: replies to what its supervisor asks for. */
export function answerSupervisor(health: Health): void {
  process.on('message', (message: Partial<ReportRequest>) => {
    const { report, id = 0 } = message
    const reply = (content: ReportReply) => process.send?.(content)
    if (report === 'metrics') health.snapshot().then(content => reply({ reportOf: report, id, content }))
    else if (report === 'readiness') health.reasons().then(content => reply({ reportOf: report, id, content }))
  })
}

/** The supervisor's side; undefined where the process doesn't reply. */
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
