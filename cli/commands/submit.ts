// `tokenmill submit FILE.ndjson`: sends the jobs of a file and prints their results.
import type { Command } from 'commander'
import { exitStatus, submitFile } from '../../producers/submit.ts'
import { addCommand } from '../command.ts'
import { openSession } from '../open/open.ts'
import { type GiveUpOption, giveUpOption, openProducer, waitingOf } from '../open/producer.ts'
import { stopper } from '../process/stopper.ts'
import { say, type Terminal } from '../terminal.ts'

export function registerSubmit(program: Command, terminal: Terminal): void {
  addCommand(
    program,
    'submit <file>',
    'sends one job per line, {kind, request, jti?, reference?, sequence?}; prints results as NDJSON',
  )
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .addOption(giveUpOption())
    .action((file: string, options: Options) => run(terminal, file, options))
}

interface Options extends GiveUpOption {
  client?: string
}

async function run(terminal: Terminal, file: string, options: Options): Promise<void> {
  const session = openSession(terminal)
  const stop = stopper(session)
  try {
    const producing = await openProducer(session, options.client, ['interactive', 'bulk'])
    const totals = await submitFile({
      file,
      ...producing,
      out: terminal.stdout,
      progress: terminal.stderr,
      log: session.log,
      signal: stop.signal,
      ...waitingOf(session, options),
    })
    const { lines, succeeded, failed, invalid, complete } = totals
    say(
      terminal,
      `${lines} lines: ${succeeded} succeeded, ${failed} failed, ${invalid} not valid${complete ? '' : '; stopped before the end: run the same command again to continue'}`,
    )
    process.exitCode = exitStatus(totals)
  } finally {
    stop.leave()
    await session.lifetime.close()
  }
}
