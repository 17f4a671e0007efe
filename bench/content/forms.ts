// How many records workers decided in each form, by their metric `tokenmill_chunk_records_total`.
import type { Outcome } from '../../src/job/outcome.ts'
import type { Supervised } from '../../workers/process/supervise.ts'

export type Form = 'columns' | 'objects'
/** By form and outcome. */
export type FormCounts = Record<Form, Partial<Record<Outcome, number>>>

interface Metric {
  name: string
  values: { labels: { form: Form; outcome: Outcome }; value: number }[]
}

/** The counts of all processes so far. */
export async function formsOf(workers: Supervised): Promise<FormCounts> {
  const counts: FormCounts = { columns: {}, objects: {} }
  for (const metric of (await workers.snapshots()).flat() as Metric[]) {
    if (metric.name !== 'tokenmill_chunk_records_total') continue
    for (const { labels, value } of metric.values) {
      const ofForm = counts[labels.form]
      ofForm[labels.outcome] = (ofForm[labels.outcome] ?? 0) + value
    }
  }
  return counts
}

export function grownBy(now: FormCounts, before: FormCounts): FormCounts {
  const grown = (form: Form) =>
    Object.fromEntries(
      (Object.entries(now[form]) as [Outcome, number][]).flatMap(([outcome, count]) => {
        const more = count - (before[form][outcome] ?? 0)
        return more > 0 ? [[outcome, more]] : []
      }),
    )
  return { columns: grown('columns'), objects: grown('objects') }
}

/**
 * The records that left the columns although their cards were neither known nor refused. In a file of updates each token is
 * known.
 */
export function leftColumns({ objects }: FormCounts, isUpdate: boolean): number {
  const { CREATED = 0, UPDATED = 0, UNCHANGED = 0 } = objects
  return isUpdate ? UPDATED + UNCHANGED : CREATED
}
