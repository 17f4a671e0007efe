// `tokenmill status`: shows whether all is well, as a list and by the exit status. It changes nothing. If a server is
// away it answers within about two seconds; slow checks of other things are awaited for up to four.
import type { Check, State } from '../../../producers/operate/check.ts'
import { readStatus, type Status } from '../../../producers/operate/status.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { readRedisInfo } from '../../../src/queue/redis-info.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { paragraphs, print, say, type Terminal, table } from '../../terminal.ts'
import { checksText, type Looking, withLook } from './look.ts'

const EXIT_OF = { well: 0, warning: 1, critical: 2, unknown: 2 } as const satisfies Record<State, number>

export function showStatus(terminal: Terminal, options: JsonOption): Promise<void> {
  return withLook(terminal, async looking => {
    const shown = new Set<string>()
    const showFirst = (answered: readonly Check[], awaited: readonly string[]) => {
      for (const { name } of answered) shown.add(name)
      print(terminal, {}, undefined, [...checksText(answered), ''])
      say(terminal, `tokenmill: these take longer: ${awaited.join(', ')}`)
    }
    const status = await readStatus(sourcesOf(looking), options.json ? undefined : showFirst)
    print(terminal, options, status, textOf(status, shown))
    const exit = EXIT_OF[status.state]
    if (exit === 0) return
    const named = status.checks.filter(({ state }) => state === status.state).map(({ name }) => name)
    throw new Stop(`${status.state}: ${named.join(', ')}`, exit)
  })
}

function sourcesOf({ store, queues, openKeys, session }: Looking) {
  const { scheduleLateMs, tls, reportsUrl, redisUrls } = session.config
  const redis = redisUrls && (() => readRedisInfo(redisUrls))
  return { store, queues, catalogue: CATALOGUE, redis, openKeys, now: Date.now(), scheduleLateMs, tls, reportsUrl }
}

/** The status as text, without the checks in `shown`, which were printed before. */
function textOf({ checks, processes }: Status, shown: ReadonlySet<string>): string[] {
  const rows = processes.map(({ host, role, version, alive, seen_seconds_ago: ago, kinds }) => [
    ...[host, role, version, alive ? 'alive' : `silent for ${ago} s`],
    kinds?.join(',') ?? '-',
  ])
  const parts = [checksText(checks.filter(({ name }) => !shown.has(name)))]
  if (rows.length > 0) parts.push(table(['HOST', 'ROLE', 'VERSION', 'STATE', 'KINDS'], rows))
  return paragraphs(parts)
}
