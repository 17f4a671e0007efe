// `tokenmill submit FILE.ndjson`: sends the jobs of a file and prints their results.
import { exitStatus, submitFile } from '../../producers/submit/submit.ts'
import { lowerPriority } from '../../src/low-priority.ts'
import { openSession } from '../open/open.ts'
import { type GiveUpOption, openProducer, waitingOf } from '../process/producer.ts'
import { stopper } from '../process/stopper.ts'
import { say, type Terminal } from '../terminal.ts'

interface Options extends GiveUpOption {
  client?: string
}

export async function run(terminal: Terminal, file: string, options: Options): Promise<void> {
  const session = openSession(terminal)
  lowerPriority(session.config.lockMs)
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
