// Makes all creates of a chunk ready to be decided: those that stand in columns, and the others as objects.
import type { RecordOutcome } from '../../../src/job/chunk-outcomes.ts'
import type { Deps } from '../../deps.ts'
import type { ChunkContext, ChunkRecord } from '../chunk.ts'
import type { PreparedCreate } from '../fold.ts'
import { refuseCardLikeReferences } from '../references.ts'
import { prepareCreates } from './creates.ts'
import { byLine, type PlainCreates, type PlainWay, preparePlain } from './plain-creates.ts'
import { openSealed } from './sealed.ts'

interface AllCreates {
  /** The records that don't stand in columns. */
  open: readonly ChunkRecord[]
  /** The outcomes of records that are decided already. */
  known: readonly RecordOutcome[]
  /** Holds the records that stand in columns; undefined if there are none. */
  way: PlainWay | undefined
}

/** `known` also has the records that were refused now. */
export async function prepareAll(
  { open, known, way }: AllCreates,
  context: ChunkContext,
  deps: Deps,
): Promise<{ known: RecordOutcome[]; creates: PreparedCreate[]; plain: PlainCreates | undefined }> {
  const sealed = way && (await openSealed(way.reader, way.scope, context, deps))
  const others = await prepareCreates(open, context, deps)
  const refused = [...known, ...others.refused, ...(sealed?.refused ?? [])]
  const prepared = sealed ? byLine(others.prepared, sealed.prepared) : others.prepared
  const judged = refuseCardLikeReferences({ known: refused, prepared }, context.cards)
  if (!way || !sealed?.plain) return { known: judged.known, creates: judged.prepared, plain: undefined }
  const all = await preparePlain(sealed.plain, { ...way, others: judged.prepared }, context, deps)
  return { known: judged.known, creates: all.prepared, plain: all.plain }
}
