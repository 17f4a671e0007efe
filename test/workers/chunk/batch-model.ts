// A batch as a sequential machine: what each deed makes of it, and what it is told. The real one may do deeds side by side
// and die in their midst; whatever it then is must be what some order of the deeds makes of this.
import { agree, extentOf, type KnownExtent } from '../../../src/job/envelope/batch-extent.ts'

/** Rows of a chunk: one good, one that finds a bug in the worker until it is mended. */
export const CHUNK_ROWS = 2

export type Deed =
  | {
      do: 'send'
      chunk: number
      mended: boolean
      says: { extent?: { chunks: number; rows: number }; last?: true; limit?: number }
    }
  | { do: 'pause' | 'resume' | 'cancel' | 'sum' | 'sweep' }

export type Counts = Partial<Record<'CREATED' | 'FAILED' | 'CANCELLED', number>>

export interface Model {
  exists: boolean
  extent: { chunks: number; rows: number | null } | null
  limit: number | null
  paused: boolean
  cancelled: boolean
  /** Receipts. */
  chunks: Readonly<Record<number, Counts>>
  /** What the row tells of them. */
  summed: { chunks: number; counts: Counts; revision: number }
  /** What was told of its end: the counts of each revision. */
  events: readonly Counts[]
}

export const NOTHING: Model = {
  exists: false,
  extent: null,
  limit: null,
  paused: false,
  cancelled: false,
  chunks: {},
  events: [],
  summed: { chunks: 0, counts: {}, revision: 0 },
}

/** `seen`: what whoever did it saw. */
export interface After {
  model: Model
  seen: string
}

export function act(model: Model, deed: Deed): After {
  return steps(model, deed).at(-1) as After
}

/** The deed as far as it comes before its process dies; the last one is all of it. */
export function steps(model: Model, deed: Deed): After[] {
  if (deed.do === 'send') return send(model, deed)
  if (!model.exists) return [{ model, seen: 'none' }]
  if (deed.do === 'sum' || deed.do === 'sweep')
    return [
      { model, seen: 'died' },
      { model: sum(model), seen: 'summed' },
    ]
  const current = deed.do === 'cancel' ? sum(model) : model
  // The command has no key to code the event of an end, so it leaves the end to the next sum.
  if (current.summed.revision !== model.summed.revision) return [{ model, seen: 'finished' }]
  const ended = current.cancelled ? 'cancelled' : current.summed.revision > 0 ? 'finished' : undefined
  // What was summed on the way is not kept where it is refused, or only until the next sum.
  if (ended) return [{ model: deed.do === 'cancel' ? current : model, seen: ended }]
  if (deed.do === 'cancel') return [{ model: { ...current, cancelled: true }, seen: 'done' }]
  if (deed.do === 'pause')
    return [model.paused ? { model, seen: 'paused' } : { model: { ...model, paused: true }, seen: 'done' }]
  const isAtLimit = model.limit !== null && model.summed.chunks >= model.limit
  if (!model.paused) return [{ model, seen: isAtLimit ? 'at_limit' : 'not_paused' }]
  return [{ model: { ...model, paused: false }, seen: 'done' }]
}

function send(model: Model, { chunk, mended, says }: Extract<Deed, { do: 'send' }>): After[] {
  const isFinished = model.summed.revision > 0
  if (model.paused && !model.cancelled && !isFinished) return [{ model, seen: 'put off' }]
  const before = model.chunks[chunk]
  if (before && !before.FAILED) return repeat(model, chunk, says, told(before))
  const extent = extentOf({ chunk, ...says })
  if (extent === 'contradiction') return [{ model, seen: 'batch_extent' }]
  const way: After[] = [{ model, seen: 'died' }]
  let now = model
  const go = (next: Model) => {
    now = next
    way.push({ model: now, seen: 'died' })
  }
  if (!now.exists) go({ ...now, exists: true, extent: known(extent), limit: says.limit ?? null })
  if (extent && !(now.extent && agree(now.extent, extent))) {
    const isBeyond = Object.keys(now.chunks).some(other => Number(other) >= extent.chunks)
    if (now.extent || isBeyond) return [...way, { model: now, seen: 'batch_extent' }]
    go({ ...now, extent: known(extent) })
  }
  if (now.extent && chunk >= now.extent.chunks)
    return [...way, { model: now, seen: isFinished ? 'batch_finished' : 'batch_extent' }]
  if (now.limit !== (says.limit ?? null)) go({ ...now, limit: says.limit ?? null })
  const left = before?.FAILED ?? CHUNK_ROWS
  const done = before?.CREATED ?? 0
  const counts: Counts = now.cancelled
    ? { CREATED: done, CANCELLED: left }
    : { CREATED: done + (mended ? left : left - 1), FAILED: mended ? 0 : 1 }
  const sent = { ...now, chunks: { ...now.chunks, [chunk]: clean(counts) } }
  return [...way, { model: sent, seen: 'died' }, { model: sent, seen: told(clean(counts)) }]
}

/** A chunk that was answered before: it may say late that no other chunk follows. */
function repeat(model: Model, chunk: number, says: Extract<Deed, { do: 'send' }>['says'], answer: string): After[] {
  const extent = says.last && !says.extent && !model.extent ? extentOf({ chunk, ...says }) : undefined
  const isBeyond = Object.keys(model.chunks).some(other => Number(other) > chunk)
  if (!extent || extent === 'contradiction' || isBeyond) return [{ model, seen: answer }]
  const ended = { ...model, extent: known(extent) }
  return [
    { model, seen: 'died' },
    { model: ended, seen: 'died' },
    { model: ended, seen: answer },
  ]
}

function known(extent: KnownExtent | undefined): Model['extent'] {
  return extent ? { chunks: extent.chunks, rows: extent.rows } : null
}

function sum(model: Model): Model {
  const all = Object.values(model.chunks)
  const counts: Counts = {}
  for (const chunk of all)
    for (const [outcome, n] of Object.entries(chunk))
      counts[outcome as keyof Counts] = (counts[outcome as keyof Counts] ?? 0) + n
  const { revision } = model.summed
  const isRevised = revision > 0 && (counts.FAILED ?? 0) < (model.summed.counts.FAILED ?? 0)
  if (revision > 0 && !isRevised) return model
  const isFinished = !model.cancelled && model.extent !== null && all.length === model.extent.chunks
  const told = isRevised || isFinished
  return {
    ...model,
    summed: { chunks: all.length, counts: clean(counts), revision: told ? revision + 1 : revision },
    events: told ? [...model.events, clean(counts)] : model.events,
  }
}

export function clean(counts: Record<string, number | undefined>): Counts {
  return Object.fromEntries(Object.entries(counts).filter(([, n]) => n)) as Counts
}

export function told(counts: Counts): string {
  const { CREATED = 0, FAILED = 0, CANCELLED = 0 } = counts
  return `${CREATED} created, ${FAILED} failed, ${CANCELLED} cancelled`
}
