// Defines the arguments and options of `tokenmill audit`. The code that runs it is loaded only when it is needed.
import { type Command, Option } from 'commander'
import type { CheckPersonProof } from '../../src/audit/proof.ts'
import { AUDIT_OUTCOMES } from '../../src/store/access/audits.ts'
import { addCommand, readCount, readMoment } from '../command.ts'
import type { Terminal } from '../terminal.ts'

/** Parts of features that are loaded only when they are needed. */
export interface AuditParts {
  personProof?: () => Promise<CheckPersonProof>
}

export function audit(family: Command, terminal: Terminal, { personProof }: AuditParts): void {
  filters(addCommand(family, 'list', 'lists rows of the audit, newest first'))
    .option('--limit <n>', 'how many at most', readCount, 50)
    .action(async options => (await import('../commands/audit/list.ts')).list(terminal, options))
  addCommand(family, 'show', 'says all of one row, and checks the signature that it keeps')
    .argument('<number>', 'the number of the row', readCount)
    .action(async (number, options) => {
      const { run } = await import('../commands/audit/show.ts')
      return run(terminal, number, options, await personProof?.())
    })
  addCommand(family, 'follow', 'prints each row as it gets its number, until Ctrl-C').action(async options =>
    (await import('../commands/audit/list.ts')).follow(terminal, options),
  )
  addCommand(family, 'export', 'writes rows with their hashes to standard output, as NDJSON, oldest first')
    .requiredOption('--from <time>', 'from this time on', readMoment)
    .option('--to <time>', 'before this time (default: now)', readMoment)
    .action(async options => (await import('../commands/audit/export.ts')).run(terminal, options))
  addCommand(family, 'verify', 'checks the rows of the store, and compares them with the segments: 0 sound, 1 not')
    .option('--segments <url>', 'where the segments are (default: AUDIT_URL)')
    .action(async options => (await import('../commands/audit/verify.ts')).run(terminal, options))
}

function filters(command: Command): Command {
  return command
    .option('--actor <actor>', 'only by this actor, such as client:ID')
    .option('--action <action>', 'only this act; `key.*` means every act on keys')
    .option('--subject <subject>', 'only on this subject')
    .addOption(new Option('--outcome <outcome>', 'only those that ended so').choices(AUDIT_OUTCOMES))
    .option('--since <time>', 'from this time on', readMoment)
    .option('--until <time>', 'before this time', readMoment)
}
