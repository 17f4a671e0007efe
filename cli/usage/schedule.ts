// Defines the arguments and options of `tokenmill schedule`. The code that runs it is loaded only when it is needed.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { MIME_TYPES, REPORT_TYPES } from '../../src/job/choices.ts'
import { isZone } from '../../src/job/schedule/zone-time.ts'
import { RUN_STATES } from '../../src/store/report/schedule-runs.ts'
import { addCommand, collect, readCount, readUuid, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'
import { readParameter } from './report.ts'

export function schedule(family: Command, terminal: Terminal): void {
  withActor(addCommand(family, 'add', 'schedules a report for every night, about the day before'))
    .addOption(new Option('--type <type>', 'type of the report').choices(REPORT_TYPES).makeOptionMandatory())
    .option('--entity <uuid>', "the merchant entity (default: the client's own)", readUuid)
    .addOption(
      new Option('--all-entities', 'one report for each entity of the client on that night').conflicts('entity'),
    )
    .requiredOption('--time <HH:MM>', 'time of day on the clock of the zone', readTime)
    .option('--zone <zone>', 'the time zone, for example Europe/Berlin', readZone, 'UTC')
    .addOption(new Option('--mime <type>', 'format of the file').choices(MIME_TYPES).default('text/csv'))
    .option(
      '--parameter <name=value>',
      'a further parameter of this type of report; may be repeated',
      collect(readParameter),
    )
    .option(
      '--client <client>',
      'the client for whom reports are made: id, name or file (default: dev-client.json of the data directory)',
    )
    .action(async options => (await import('../commands/schedule.ts')).add(terminal, options))
  addCommand(family, 'list', 'lists schedules and the last runs of each').action(async options =>
    (await import('../commands/schedule.ts')).list(terminal, options),
  )
  withActor(addCommand(family, 'remove', 'ends a schedule; its reports stay'))
    .argument('<id>', 'the schedule', readUuid)
    .action(async (id, options) => (await import('../commands/schedule.ts')).remove(terminal, id, options))
  addCommand(family, 'runs', 'lists the runs of schedules, with states and reasons, the latest first')
    .argument('[id]', 'the schedule (default: all)', readUuid)
    .addOption(new Option('--state <state>', 'only runs in this state').choices(RUN_STATES))
    .option('--limit <n>', 'how many at most', readCount, 50)
    .action(async (id, options) => (await import('../commands/schedule-runs.ts')).list(terminal, id, options))
  withActor(addCommand(family, 'run', 'makes the run of a date now, also where it has failed'))
    .argument('<id>', 'the schedule', readUuid)
    .argument('<date>', 'the reported date (UTC), YYYY-MM-DD', readDate)
    .action(async (id, date, options) =>
      (await import('../commands/schedule-runs.ts')).run(terminal, id, date, options),
    )
  change(family, terminal)
}

/** Changes that last until the other one. */
function change(family: Command, terminal: Terminal): void {
  withActor(addCommand(family, 'pause', 'lets no further run of a schedule of reports begin'))
    .argument('<id>', 'the schedule', readUuid)
    .action(async (id, options) => (await import('../commands/schedule-runs.ts')).pause(terminal, id, options))
  withActor(
    addCommand(family, 'resume', 'lets a paused schedule go on; of the dates that it missed, the last seven are made'),
  )
    .argument('<id>', 'the schedule', readUuid)
    .action(async (id, options) => (await import('../commands/schedule-runs.ts')).resume(terminal, id, options))
}

function readDate(text: string): string {
  const isDate = /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
  if (!isDate || new Date(text).toISOString().slice(0, 10) !== text)
    throw new InvalidArgumentError('It is not a date such as 2030-01-31.')
  return text
}

function readTime(text: string): string {
  if (!/^([01]\d|2[0-3]):[0-5]\d$/.test(text)) throw new InvalidArgumentError('Give it as HH:MM, 00:00 to 23:59.')
  return text
}

function readZone(text: string): string {
  // An offset has no daylight saving time, so a zone must be named by a place.
  if (!/^[A-Z]/i.test(text) || !isZone(text))
    throw new InvalidArgumentError('It is not a time zone such as Europe/Berlin.')
  return text
}
