// Runs the process that makes a report: forked for one report, ended with the worker, at most one at a time. So a long
// report never holds up other work of this process, and its memory is freed with it.
import { fork } from 'node:child_process'
import { FAULTS, Fault, type FaultCode } from '../../src/errors.ts'
import type { Made } from '../../src/store/report/reports.ts'
import type { ReportTask } from './make.ts'

/** What the process sends: its progress, then how it ended. */
export type Said = { lines: number } | { made: Made } | { mismatch: string } | { fault: string }

export type Ended = { made: Made } | { mismatch: string }

/**
 * Makes a report. Throws a Fault: the process's own, or `report_died`. `onLines`: called with the number of lines read
 * so far.
 */
export type MakeReport = (task: ReportTask, onLines: (lines: number) => void) => Promise<Ended>

/** Limits of the heap, which would otherwise grow with the number of rows. */
const HEAP = ['--max-semi-space-size=16', '--max-old-space-size=160']

/** A process that says nothing for so long, in ms, hangs. Before its first line three statements may take a quarter of an hour each. */
const SILENT_MS = 90 * 60_000

/** `script`, run with `env`, gets one `ReportTask`, sends messages of type `Said`, and ends. */
export function openReportMaker(script: string, env: NodeJS.ProcessEnv, { silentMs = SILENT_MS } = {}): MakeReport {
  let turn: Promise<unknown> = Promise.resolve()
  return (task, onLines) => {
    const mine = turn.then(() => run({ script, env, silentMs }, task, onLines))
    turn = mine.catch(() => {})
    return mine
  }
}

function run(
  { script, env, silentMs }: { script: string; env: NodeJS.ProcessEnv; silentMs: number },
  task: ReportTask,
  onLines: (lines: number) => void,
): Promise<Ended> {
  const child = fork(script, {
    env,
    execArgv: [...process.execArgv, ...HEAP],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const told = Promise.withResolvers<Ended>()
  const hung = setTimeout(() => child.kill('SIGKILL'), silentMs)
  child.on('message', (said: Said) => {
    hung.refresh()
    if ('lines' in said) onLines(said.lines)
    else if ('fault' in said) told.reject(new Fault(codeOf(said.fault)))
    else told.resolve(said)
  })
  child.once('error', error => told.reject(new Fault('report_died', error)))
  child.once('exit', () => told.reject(new Fault('report_died')))
  child.send(task, error => {
    if (error) told.reject(new Fault('report_died', error))
  })
  return told.promise.finally(() => {
    clearTimeout(hung)
    child.kill('SIGKILL')
  })
}

function codeOf(word: string): FaultCode {
  return Object.hasOwn(FAULTS, word) ? (word as FaultCode) : 'defect'
}
