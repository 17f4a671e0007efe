// The counters of a test's worker processes, added up over all of them.
import { freePort } from '../support/redis.ts'

export interface Counters {
  /** For `startWorkers`: each process takes the next free port from it. */
  env: { TOKENMILL_METRICS_PORT: string }
  /** The sum of a counter over its series with these labels, or over all. */
  read(name: string, labels?: Record<string, string>): Promise<number>
  /** Value by label of a counter that has one. */
  by(name: string, label: string): Promise<Record<string, number>>
  /** When the processes began: another one means that one of them died. */
  began(): Promise<string>
}

const PORTS = 4

export async function openCounters(): Promise<Counters> {
  const first = await freePort()
  const lines = async () => {
    const ports = Array.from({ length: PORTS }, (_, index) => first + index)
    const pages = await Promise.all(
      ports.map(port =>
        fetch(`http://127.0.0.1:${port}/metrics`).then(
          page => page.text(),
          () => '',
        ),
      ),
    )
    return pages.flatMap(page => page.split('\n'))
  }
  const series = async (name: string) =>
    (await lines()).flatMap(line => {
      const [, labels = '', value] = new RegExp(`^${name}\\{(.*)\\} (\\S+)$`).exec(line) ?? []
      if (value === undefined) return []
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', text = '']) => [key, text] as const)
      return [{ labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }]
    })
  return {
    env: { TOKENMILL_METRICS_PORT: String(first) },
    async read(name, labels = {}) {
      const wanted = (await series(name)).filter(one =>
        Object.entries(labels).every(([key, text]) => one.labels[key] === text),
      )
      return wanted.reduce((sum, { value }) => sum + value, 0)
    },
    async by(name, label) {
      const sums: Record<string, number> = {}
      for (const { labels, value } of await series(name))
        sums[labels[label] ?? ''] = (sums[labels[label] ?? ''] ?? 0) + value
      return sums
    },
    began: async () => JSON.stringify(await series('tokenmill_process_process_start_time_seconds')),
  }
}
