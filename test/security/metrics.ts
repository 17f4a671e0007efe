// The counters of a test's worker processes, added up over all of them.
import { pageOf } from '../../src/metrics.ts'
import type { Supervised } from '../../workers/process/supervise.ts'
import { until } from '../support/until.ts'

export interface Counters {
  /** The sum of a counter over its series with these labels, or over all. */
  read(name: string, labels?: Record<string, string>): Promise<number>
  /** The values of a counter by this label, without zeros. */
  by(name: string, label: string): Promise<Record<string, number>>
  /** When the processes began. It changes if one of them dies. */
  began(): Promise<string>
}

/** An interactive one and a bulk one. */
const PROCESSES = 2

export function openCounters(workers: Pick<Supervised, 'snapshots'>): Counters {
  /** Asks again until all processes reply, because a busy one may reply too late. */
  const snapshots = () =>
    until(
      async () => {
        const told = await workers.snapshots()
        return told.length === PROCESSES && told
      },
      { what: 'an answer of each worker process' },
    )
  const series = async (name: string) =>
    (await pageOf(await snapshots())).split('\n').flatMap(line => {
      const [, labels = '', value] = new RegExp(`^${name}\\{(.*)\\} (\\S+)$`).exec(line) ?? []
      if (value === undefined) return []
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', text = '']) => [key, text] as const)
      return [{ labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }]
    })
  return {
    async read(name, labels = {}) {
      const wanted = (await series(name)).filter(one =>
        Object.entries(labels).every(([key, text]) => one.labels[key] === text),
      )
      return wanted.reduce((sum, { value }) => sum + value, 0)
    },
    async by(name, label) {
      const sums: Record<string, number> = {}
      for (const { labels, value } of await series(name))
        if (value > 0) sums[labels[label] ?? ''] = (sums[labels[label] ?? ''] ?? 0) + value
      return sums
    },
    began: async () => JSON.stringify(await series('process_start_time_seconds')),
  }
}
