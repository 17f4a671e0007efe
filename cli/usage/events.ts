// Defines the arguments and options of `tokenmill events`. The code that runs it is loaded only when it is needed.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { EVENTS, type EventType } from '../../src/job/event.ts'
import { DELIVERY_STATES } from '../../src/store/event/deliveries.ts'
import { addCommand, readCount, readUuid, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'

const load = () => import('../commands/events/endpoints.ts')
const loadDeliveries = () => import('../commands/events/deliveries.ts')

export function events(family: Command, terminal: Terminal): void {
  withActor(
    addCommand(family, 'add <client>', 'subscribes a client (id or name) to events, at its results queue or at a URL')
      .requiredOption('--to <place>', '`queue`, or a URL that takes webhooks')
      .requiredOption('--events <events>', `comma-separated: ${EVENTS.join(', ')}`, readEvents),
  ).action(async (client, options) => (await load()).add(terminal, client, options))
  addCommand(family, 'list', 'lists subscriptions, oldest first')
    .option('--client <client>', 'only those of this client (id or name)')
    .action(async options => (await load()).list(terminal, options))
  withActor(
    addCommand(family, 'remove <id>', 'ends a subscription; what it was not told yet is not told any more'),
  ).action(async (id, options) => (await load()).remove(terminal, readUuid(id), options))
  withActor(
    addCommand(family, 'rotate-secret <id>', 'makes a new secret; the former one signs, too, for 24 h').option(
      '--at-once',
      'the former secret ends now, as after a leak',
    ),
  ).action(async (id, options) => (await load()).rotate(terminal, readUuid(id), options))
  withActor(addCommand(family, 'enable <id>', 'lets an endpoint that answered 410 go on')).action(async (id, options) =>
    (await load()).enable(terminal, readUuid(id), options),
  )
  addCommand(family, 'deliveries', 'lists deliveries to URLs, newest event first, with their states and reasons')
    .option('--endpoint <id>', 'only those to this endpoint', readUuid)
    .option('--client <client>', 'only those of this client (id or name)')
    .addOption(new Option('--state <state>', 'only those in this state').choices(DELIVERY_STATES))
    .option('--limit <n>', 'how many at most', readCount, 50)
    .action(async options => (await loadDeliveries()).list(terminal, options))
  withActor(addCommand(family, 'redeliver <id>', 'tries a delivery now, and by the whole schedule if it fails')).action(
    async (id, options) => (await loadDeliveries()).redeliver(terminal, readUuid(id), options),
  )
}

function readEvents(text: string): EventType[] {
  const words = [...new Set(text.split(','))]
  const known = words.filter((word): word is EventType => (EVENTS as readonly string[]).includes(word))
  if (known.length < words.length) throw new InvalidArgumentError(`The events are ${EVENTS.join(', ')}.`)
  return known
}
