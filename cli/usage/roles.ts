// Defines the arguments and options of the long-running roles. The code that runs them is loaded only when it is
// needed.
import type { Command } from 'commander'
import { readCount } from '../command.ts'
import type { Terminal } from '../terminal.ts'

/** `script`: the command's own script, from which `start` forks its HTTP roles. */
export function start(command: Command, terminal: Terminal, script: string): void {
  command.action(async () => (await roles()).runStart(terminal, script))
}

export function gateway(command: Command, terminal: Terminal): void {
  command.action(async () => (await roles()).runGateway(terminal))
}

export function threeDs(command: Command, terminal: Terminal): void {
  command.action(async () => (await roles()).runThreeDs(terminal))
}

export function consoleRole(command: Command, terminal: Terminal): void {
  command.action(async () => (await roles()).runConsole(terminal))
}

export function workers(command: Command, terminal: Terminal): void {
  command
    .option('--kinds <list>', 'work on these kinds only, comma-separated')
    .option('--concurrency <n>', 'number of jobs at once, per kind and process', readCount)
    .action(async options => (await roles()).runWorkers(terminal, options))
}

export function scheduler(command: Command, terminal: Terminal): void {
  command.action(async () => (await roles()).runScheduler(terminal))
}

const roles = () => import('../commands/run.ts')
