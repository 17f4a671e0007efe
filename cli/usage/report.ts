// Defines the arguments and options of `tokenmill report`. The code that runs it is loaded only when it is needed.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { MIME_TYPES, REPORT_TYPES } from '../../src/job/choices.ts'
import { addCommand, collect, readCount, readUuid } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function report(family: Command, terminal: Terminal): void {
  addCommand(family, 'request', 'requests a report')
    .addOption(new Option('--type <type>', 'type of the report').choices(REPORT_TYPES).makeOptionMandatory())
    .option('--parameter <name=value>', 'a parameter of this type of report; may be repeated', collect(readParameter))
    .addOption(new Option('--mime <type>', 'format of the file').choices(MIME_TYPES).default('text/csv'))
    .option('--entity <uuid>', "the merchant entity (default: the client's own)", readUuid)
    .option('--refresh', 'make the report anew, even if it was made before')
    .option('--wait', 'wait until the report is made')
    .option('--client <file>', "the client's credentials (default: dev-client.json of the data directory)")
    .action(async options => (await import('../commands/report.ts')).request(terminal, options))
  addCommand(family, 'list', 'lists reports, newest first')
    .option('--search <rsql>', "filter, such as 'status==FAILED;createdOn>2030-01-31' (default: all reports)")
    .option('--limit <n>', 'how many at most', readCount, 50)
    .option(
      '--client <client>',
      "only reports of this client's own entity, or of those that --search names: id, name or file",
    )
    .action(async options => (await import('../commands/reports.ts')).list(terminal, options))
  addCommand(family, 'download', 'downloads the file of a report and checks its digest')
    .argument('<uid>', 'the report', readUuid)
    .option('--out <file>', 'file to write (default: standard output)')
    .action(async (uid, options) => (await import('../commands/reports.ts')).download(terminal, uid, options))
}

export function readParameter(text: string): { name: string; value: string } {
  const [, name, value] = /^([A-Za-z][A-Za-z0-9]{0,63})=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new InvalidArgumentError('Give it as name=value.')
  return { name, value }
}
