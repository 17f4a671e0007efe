// Opens the encrypted cards of the plain records of a chunk. A card that may stand in columns is put at its record's
// place; any other record is refused, or becomes an object for the rules of fold.ts.
import { isRefusal } from '../../../src/errors.ts'
import type { RecordOutcome } from '../../../src/job/chunk-outcomes.ts'
import type { Scope } from '../../../src/store/access/scopes.ts'
import { openCaptures } from '../../card/open-captures.ts'
import type { Deps } from '../../deps.ts'
import { type ChunkContext, keeperOf } from '../chunk.ts'
import { type PreparedCreate, rejected } from '../fold.ts'
import type { PlainReader } from './plain.ts'
import { preparedOf } from './prepared.ts'
import { openedCardOf, type PlainRecords, putCard, withoutPlaces } from './records.ts'

export interface OpenedSealed {
  /** The records that stand in columns; undefined if there are none. */
  plain: PlainRecords | undefined
  refused: RecordOutcome[]
  prepared: PreparedCreate[]
}

export async function openSealed(
  { records, sealed }: Pick<PlainReader, 'records' | 'sealed'>,
  scope: Scope,
  { work, acceptedAt, cards }: ChunkContext,
  deps: Deps,
): Promise<OpenedSealed> {
  const refused: RecordOutcome[] = []
  const prepared: PreparedCreate[] = []
  if (sealed.length === 0) return { plain: records, refused, prepared }
  const headAt = (place: number) => ({ line: records.lines[place] ?? 0, reference: records.references[place] })
  if (deps.inspect) for (const { place } of sealed) deps.inspect(headAt(place))
  const bins = deps.directory.bins()
  const left = new Set<number>()
  await openCaptures(
    sealed,
    { client: work.client, acceptedAt, cards, job: keeperOf(work) },
    deps,
    ({ place }, card) => {
      const plain = isRefusal(card) ? undefined : openedCardOf(card, bins)
      if (plain) return putCard(records, place, plain)
      left.add(place)
      const head = headAt(place)
      if (isRefusal(card)) return void refused.push(rejected(head, card))
      const giver = [acceptedAt, '', head.line] as const
      const asked = { ...head, request: {}, scope, contract: undefined, claim: records.claims[place], giver }
      const ended = preparedOf(asked, card, 'body.encrypted_card', deps)
      if ('outcome' in ended) refused.push(ended)
      else prepared.push(ended)
    },
  )
  const isEmpty = left.size === records.lines.length
  return { plain: isEmpty ? undefined : withoutPlaces(records, left), refused, prepared }
}
