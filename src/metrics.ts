// The registry of one process's metrics, in Prometheus' text format. Each room lists its metrics in a file
// `metrics.ts`, so that a process shows only the metrics of its role; docs/metrics.md lists them all.
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { cleanText } from './clean-text.ts'
import { readVersion } from './version.ts'

/**
 * Label → its possible values. A counter or histogram has a series for each combination from the start, so that
 * Prometheus sees the first increase. If a label has no values here, because they aren't known beforehand, series begin
 * with their first observation.
 */
export type Labels = Record<string, readonly string[]>
type NameOf<L> = Extract<keyof L, string>

/** The metrics of a forked process, as it sends them to its parent. */
export type Snapshot = readonly object[]

export interface MetricsRegistry {
  counter<L extends Labels>(name: string, help: string, labels?: L): Counter<NameOf<L>>
  gauge<L extends Labels>(name: string, help: string, labels?: L): Gauge<NameOf<L>>
  /** A histogram of seconds. */
  histogram<L extends Labels>(name: string, help: string, labels: L, buckets?: readonly number[]): Histogram<NameOf<L>>
  /**
   * Adds the metrics of Node and the operating system about this process, under the names that all Node programs use.
   */
  collectProcess(): void
  snapshot(): Promise<Snapshot>
}

export interface RegistryOptions {
  /** The role of the process: `gateway`, `scheduler`, … */
  role: string
  /** The label `process` of every series: which of a role's processes on the host (`bulk-0`). Default: the role. */
  process?: string
}

export type { Gauge }

export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const
/**
 * Gauges of Node whose names end in `_total`, as only counters' names should. Other metrics of Node say the same by
 * type of resource.
 */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

export const CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

/** Opens the registry of one process. Every name gets the prefix `tokenmill_`, except those of `collectProcess`. */
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
      // Before the first measurement the gauge has no value: 0 would be a measured value.
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
    snapshot: async () => (await registry.getMetricsAsJSON()).map(withCleanLabels),
  }
  opened
    .gauge('build_info', 'Always 1: the release that runs, and the role of the process.', { version: [], role: [] })
    .set({ version: readVersion(), role }, 1)
  return opened
}

/** Every combination of the labels' values; none if the values of a label aren't known. */
function combine<L extends Labels>(labels: L | undefined): Record<NameOf<L>, string>[] {
  let series: Record<string, string>[] = labels === undefined ? [] : [{}]
  for (const [label, values] of Object.entries(labels ?? {}))
    series = series.flatMap(one => values.map(value => ({ ...one, [label]: value })))
  return series as Record<NameOf<L>, string>[]
}

/** Values of labels may be names that others chose, and an alert repeats them. */
function withCleanLabels<M extends { values: { labels: object }[] }>(metric: M): M {
  const clean = (labels: object) =>
    Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [name, typeof value === 'string' ? cleanText(value) : value]),
    )
  return { ...metric, values: metric.values.map(value => ({ ...value, labels: clean(value.labels) })) }
}

/** One metrics page for several processes. Their series differ in the label `process`. */
export function pageOf(snapshots: readonly Snapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate([...snapshots]).metrics()
}

/** Removes all values of a gauge. */
export function forget(gauge: Gauge): void {
  gauge.reset()
  // `reset` would set a gauge without labels to zero, which would look like a measured value. So the series is removed.
  gauge.remove({})
}
