// The registry of one process's metrics, in Prometheus' text format. Which metrics a role has is said by its room
// (`metrics.ts` there), so that a process shows only what its role owns; docs/metrics.md lists them all.
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { readVersion } from './version.ts'

/**
 * The values of each label. A counter or histogram has a series for each combination from the start, so that its first
 * increase is seen as one; where a label's values aren't known beforehand (none given), series begin with their first
 * observation.
 */
export type Labels = Record<string, readonly string[]>
type NameOf<L> = Extract<keyof L, string>

/** What a process answers when it is asked for its metrics by the process that forked it. */
export type Snapshot = readonly object[]

export interface MetricsRegistry {
  counter<L extends Labels>(name: string, help: string, labels?: L): Counter<NameOf<L>>
  gauge<L extends Labels>(name: string, help: string, labels?: L): Gauge<NameOf<L>>
  /** In seconds. */
  histogram<L extends Labels>(name: string, help: string, labels: L, buckets?: readonly number[]): Histogram<NameOf<L>>
  /** Adds what Node and the system tell of this process, under the names that all Node programs use. */
  collectProcess(): void
  snapshot(): Promise<Snapshot>
}

export interface RegistryOptions {
  /** What the process does: `gateway`, `scheduler`, … */
  role: string
  /** A label of every series: which of a role's processes on its host, `bulk-0`; the role where it has one process. */
  process?: string
}

export type { Gauge }

export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const
/** Gauges that are named as counters are; Node's other metrics say the same by type of resource. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

export const CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

/** The metrics of one process. Names get the prefix `tokenmill_`. */
export function openRegistry({ role, process = role }: RegistryOptions): MetricsRegistry {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  const registers = [registry]
  const named = <L extends Labels>(name: string, help: string, labels: L | undefined) => ({
    name: `tokenmill_${name}`,
    help,
    labelNames: Object.keys(labels ?? {}) as NameOf<L>[],
    registers,
  })
  const opened: MetricsRegistry = {
    counter: (name, help, labels) => {
      const counter = new Counter(named(name, help, labels))
      for (const series of combine(labels)) counter.inc(series, 0)
      return counter
    },
    gauge: <L extends Labels>(name: string, help: string, labels?: L) => {
      const gauge = new Gauge(named(name, help, labels))
      // Nothing was measured yet: that isn't zero.
      if (labels === undefined) gauge.remove({})
      return gauge
    },
    histogram: (name, help, labels, buckets = SECONDS) => {
      const histogram = new Histogram({ ...named(name, help, labels), buckets: [...buckets] })
      for (const series of combine(labels)) histogram.zero(series)
      return histogram
    },
    collectProcess: () => {
      collectDefaultMetrics({ register: registry })
      for (const name of MISNAMED) registry.removeSingleMetric(name)
    },
    snapshot: () => registry.getMetricsAsJSON(),
  }
  opened
    .gauge('build_info', 'Always 1: the release that runs, and the role of the process.', { version: [], role: [] })
    .set({ version: readVersion(), role }, 1)
  return opened
}

/** Every combination of the labels' values; none where a label's values aren't known. */
function combine<L extends Labels>(labels: L | undefined): Record<NameOf<L>, string>[] {
  let series: Record<string, string>[] = labels === undefined ? [] : [{}]
  for (const [label, values] of Object.entries(labels ?? {}))
    series = series.flatMap(one => values.map(value => ({ ...one, [label]: value })))
  return series as Record<NameOf<L>, string>[]
}

/** One page of several processes' metrics. Their series differ by the label `process`. */
export function pageOf(snapshots: readonly Snapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate([...snapshots]).metrics()
}

/** Leaves a gauge without a value. */
export function forget(gauge: Gauge): void {
  gauge.reset()
  // A gauge without labels is reset to zero, which is a value.
  gauge.remove({})
}
