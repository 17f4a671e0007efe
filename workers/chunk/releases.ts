// The `reference` records of a chunk: owners are released in file order, all of them under the locks of their tokens.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import { ownerOf } from '../../src/job/on-file.ts'
import type { ReferenceRecord } from '../../src/job/reference.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import { scopeFor } from '../card/card-facts.ts'
import type { Deps } from '../deps.ts'
import { type AskedRelease, predictReleases, type ReleaseEnd, releaseAll } from '../reference/release.ts'
import type { ChunkContext, ChunkRecord, Decided } from './chunk.ts'
import { rejected } from './fold.ts'

export interface PreparedRelease extends AskedRelease {
  line: number
  reference: string | undefined
}

export async function prepareReleases(
  records: readonly ChunkRecord[],
  { work }: ChunkContext,
  deps: Pick<Deps, 'directory'>,
): Promise<{ refused: RecordOutcome[]; prepared: PreparedRelease[] }> {
  const scopes = new Map<string, Scope | Refusal>()
  const scopeOf = async (named: string | undefined): Promise<Scope | Refusal> => {
    if (named === undefined) return refuse('field_required', 'body.token_scope')
    const scope = scopes.get(named) ?? (await scopeFor(work.client, named, deps.directory, 'body.token_scope'))
    scopes.set(named, scope)
    return scope
  }
  const refused: RecordOutcome[] = []
  const prepared: PreparedRelease[] = []
  for (const record of records) {
    if (!('request' in record)) continue
    const { line, reference } = record
    const request = record.request as ReferenceRecord
    const scope = await scopeOf(request.token_scope ?? work.request.token_scope)
    if (isRefusal(scope)) refused.push(rejected(record, scope))
    else {
      const owner = ownerOf(request, scope.tokenScope)
      prepared.push({ line, reference, owner, onOrphan: request.on_orphan ?? 'keep' })
    }
  }
  return { refused, prepared: prepared.sort((a, b) => a.line - b.line) }
}

export function decideReleases(
  prepared: readonly PreparedRelease[],
  { work: { request, now, receiptId } }: ChunkContext,
  deps: Deps,
): Decided {
  return {
    save: async db => {
      if (prepared.length === 0) return []
      const ends = request.dry_run
        ? await predictReleases(db, prepared, deps)
        : await releaseAll(db, prepared, { now, receiptId }, deps)
      return prepared.map((record, index) => outcomeOf(record, ends[index]))
    },
  }
}

function outcomeOf(record: PreparedRelease, end: ReleaseEnd | undefined): RecordOutcome {
  if (!end) throw new Error('broken law: each release that is asked for has an end')
  if (isRefusal(end)) return rejected(record, end)
  const { line, reference } = record
  return { line, reference, outcome: end.outcome, reason: undefined, field: undefined, token: end.token }
}
