// What a dry run says of plain records, and keeps of them: each would make a token.
import type { CreatedRecords } from '../../../src/job/answer/created-columns.ts'
import type { ScratchEntry, ScratchRow } from '../../../src/store/batch/dry-runs.ts'
import { pick, uuidTexts } from '../../../src/store/binary.ts'
import type { Guess } from '../../../src/store/token/guesses.ts'
import type { StoredToken } from '../../../src/store/token/tokens.ts'
import { shownBin } from '../../../src/token/brand.ts'
import { newTokenRow } from '../../../src/token/new-token.ts'
import { guessOf } from '../../card/guess-limit.ts'
import { tokenIdsAt } from '../../card/seal-row.ts'
import type { ChunkContext } from '../chunk.ts'
import { policyOf } from '../fold.ts'
import { factsAt, givenBy, giverAt, type PlainCreates, toldOf } from './plain-creates.ts'

/** The digits of each card for which a plain record asks, in the columns' order. */
export function guessesAt({ records, scope, order }: PlainCreates, { work }: ChunkContext): Guess[] {
  const pans = records.pans.reveal()
  return order.map(place => {
    const pan = pans[place] ?? ''
    const digits = { bin: shownBin(pan, scope.binDigits), lastFour: pan.slice(-4) }
    return guessOf(work.client.clientId, scope.tokenScope, digits)
  })
}

export function predictPlain(
  plain: PlainCreates,
  context: ChunkContext,
): { entries: ScratchEntry[]; created: CreatedRecords } {
  const { records, scope, prints, order } = plain
  const { work, acceptedAt } = context
  const { now, receiptId } = work
  const ids = tokenIdsAt(now, order.length)
  const told = toldOf(plain, ids)
  const fingerprints = uuidTexts(pick(prints, order))
  const policy = policyOf(context)
  const entries = order.map((place, index) => {
    const fp = fingerprints[index] ?? ''
    const made = newTokenRow(givenBy(records, place), factsAt(plain, place, [fp]), {
      now,
      receiptId,
      giver: giverAt(records, place, acceptedAt),
      tokenId: told.tokenIds[index] ?? '',
      tokenScope: scope.tokenScope,
      batch: { ...policy, line: records.lines[place] ?? 0 },
    })
    return { fp, row: scratchOf({ ...made, sealVersion: null }), isSeen: false }
  })
  return { entries, created: { ...told, isNamed: false } }
}

/** The row as it is kept. */
export function scratchOf(token: StoredToken): ScratchRow {
  const { cards: _, storedCards: __, link: ___, sealed: ____, ...row } = token
  return row
}
