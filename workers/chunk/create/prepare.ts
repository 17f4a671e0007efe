// Makes all creates of a chunk ready to be decided: those that stand in columns, and the others as objects.
import { isRefusal } from '../../../src/errors.ts'
import type { RecordOutcome } from '../../../src/job/chunk-outcomes.ts'
import type { Scope } from '../../../src/store/access/scopes.ts'
import { openCaptures } from '../../card/open-captures.ts'
import type { Deps } from '../../deps.ts'
import { type ChunkContext, type ChunkRecord, keeperOf } from '../chunk.ts'
import { type PreparedCreate, rejected } from '../fold.ts'
import { cardLikeRefusal, refuseCardLikeReferences } from '../references.ts'
import { isFuture, refuseTime } from '../source-times.ts'
import { prepareCreates } from './creates.ts'
import type { PlainReader } from './plain.ts'
import { byLine, type PlainCreates, type PlainWay, preparePlain } from './plain-creates.ts'
import { preparedOf } from './prepared.ts'
import { openedCardOf, type PlainRecords, putCard, withoutPlaces } from './records.ts'

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
  const timely = way && refuseFuture(way.reader, context)
  const sealed = way && timely && (await openSealed(timely, way.scope, context, deps))
  const others = await prepareCreates(open, context, deps)
  const refused = [...known, ...others.refused, ...(timely?.refused ?? []), ...(sealed?.refused ?? [])]
  const prepared = sealed ? byLine(others.prepared, sealed.prepared) : others.prepared
  const judged = refuseCardLikeReferences({ known: refused, prepared }, context.cards)
  if (!way || !sealed?.plain) return { known: judged.known, creates: judged.prepared, plain: undefined }
  // By now all cards of the chunk are known.
  const { plain, refused: cardLike } = refuseCardLike(sealed.plain, context.cards)
  const everyKnown = [...judged.known, ...cardLike]
  if (!plain) return { known: everyKnown, creates: judged.prepared, plain: undefined }
  const all = await preparePlain(plain, { ...way, others: judged.prepared }, context, deps)
  return { known: everyKnown, creates: all.prepared, plain: all.plain }
}

/** Refuses the records that were given after the batch was accepted. */
function refuseFuture(
  { records, sealed }: Pick<PlainReader, 'records' | 'sealed'>,
  { acceptedAt }: ChunkContext,
): Pick<PlainReader, 'records' | 'sealed'> & { refused: RecordOutcome[] } {
  const { givers, lines, references } = records
  const ahead = [...givers.keys()].filter(place => isFuture(givers[place]?.[0] ?? 0, acceptedAt))
  if (ahead.length === 0) return { records, sealed, refused: [] }
  const gone = new Set(ahead)
  const placeNow = (place: number) => place - ahead.filter(one => one < place).length
  return {
    records: withoutPlaces(records, gone),
    sealed: sealed.filter(({ place }) => !gone.has(place)).map(one => ({ ...one, place: placeNow(one.place) })),
    refused: ahead.map(place => rejected({ line: lines[place] ?? 0, reference: references[place] }, refuseTime())),
  }
}

interface OpenedSealed {
  /** The records that stand in columns; undefined if there are none. */
  plain: PlainRecords | undefined
  refused: RecordOutcome[]
  prepared: PreparedCreate[]
}

/**
 * Opens the encrypted cards of the plain records. A card that may stand in columns is put at its record's place; any
 * other record is refused, or becomes an object for the rules of fold.ts.
 */
async function openSealed(
  { records, sealed }: Pick<PlainReader, 'records' | 'sealed'>,
  scope: Scope,
  { work, acceptedAt, cards }: ChunkContext,
  deps: Deps,
): Promise<OpenedSealed> {
  const refused: RecordOutcome[] = []
  const prepared: PreparedCreate[] = []
  const isNone = records.lines.length === 0
  if (sealed.length === 0) return { plain: isNone ? undefined : records, refused, prepared }
  const headAt = (place: number) => ({ line: records.lines[place] ?? 0, reference: records.references[place] })
  if (deps.inspect) for (const { place } of sealed) deps.inspect(headAt(place))
  const rules = { bins: deps.directory.bins(), localSchemes: deps.settings.localSchemes }
  const left = new Set<number>()
  await openCaptures(
    sealed,
    { client: work.client, acceptedAt, cards, job: keeperOf(work) },
    deps,
    ({ place }, card) => {
      const plain = isRefusal(card) ? undefined : openedCardOf(card, rules)
      if (plain) return putCard(records, place, plain)
      left.add(place)
      const head = headAt(place)
      if (isRefusal(card)) return void refused.push(rejected(head, card))
      const giver = records.givers[place] ?? ([acceptedAt, '', head.line] as const)
      const relinks = work.request.policy?.relink === true
      const asked = { ...head, request: {}, scope, contract: undefined, claim: records.claims[place], giver, relinks }
      const ended = preparedOf(asked, card, 'body.encrypted_card', deps)
      if ('outcome' in ended) refused.push(ended)
      else prepared.push(ended)
    },
  )
  const isEmpty = left.size === records.lines.length
  return { plain: isEmpty ? undefined : withoutPlaces(records, left), refused, prepared }
}

/** The same as `refuseCardLikeReferences` for records in columns. `plain`: undefined if none is left. */
function refuseCardLike(
  records: PlainRecords,
  cards: ChunkContext['cards'],
): { plain: PlainRecords | undefined; refused: RecordOutcome[] } {
  if (!cards) return { plain: records, refused: [] }
  const { lines, references, cardLike } = records
  const left = new Set<number>()
  const refused: RecordOutcome[] = []
  for (const [place, texts] of cardLike.entries()) {
    if (texts === undefined) continue
    const record = { line: lines[place] ?? 0, reference: references[place] }
    const refusal = cardLikeRefusal(record.reference, texts, cards)
    if (!refusal) continue
    left.add(place)
    refused.push(rejected(record, refusal))
  }
  if (left.size === 0) return { plain: records, refused: [] }
  return { plain: left.size === lines.length ? undefined : withoutPlaces(records, left), refused }
}
