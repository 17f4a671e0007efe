// `tokenmill submit FILE.ndjson`: bulk token work of upstream systems.
import type { Command } from 'commander'
import { exitStatus, submitFile } from '../../producers/submit.ts'
import { addCommand } from '../command.ts'
import { openSession } from '../open/open.ts'
import { openProducer } from '../open/producer.ts'
import { say, type Terminal } from '../terminal.ts'

export function registerSubmit(program: Command, terminal: Terminal): void {
  addCommand(
    program,
    'submit <file>',
    'one job per line, {kind, request, jti?, reference?, sequence?}; results as NDJSON on standard output',
  )
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .action((file: string, options: { client?: string }) => run(terminal, file, options.client))
}

async function run(terminal: Terminal, file: string, client: string | undefined): Promise<void> {
  const session = openSession(terminal)
  const controller = new AbortController()
  const stop = () => controller.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    const { queues, credentials } = await openProducer(session, client, ['interactive', 'bulk'])
    const totals = await submitFile({
      file,
      queues,
      credentials,
      out: terminal.stdout,
      progress: terminal.stderr,
      log: session.log,
      signal: controller.signal,
      resendMs: session.config.resendMs,
    })
    const { lines, succeeded, failed, invalid, complete } = totals
    say(
      terminal,
      `${lines} lines: ${succeeded} succeeded, ${failed} failed, ${invalid} not valid${complete ? '' : '; stopped before the end: run the same command again to go on'}`,
    )
    process.exitCode = exitStatus(totals)
  } finally {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
    await session.lifetime.close()
  }
}
