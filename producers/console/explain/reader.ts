// The reader of an explanation for a person of the console: every statement takes the person's sight. It doesn't read the
// outcomes of chunks, nor the values of third parties' tokens.
import { resultId } from '../../../src/job/envelope/ids.ts'
import { Problem } from '../../../src/job/problem.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { findById } from '../../../src/store/batch/batch-list.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import { SEEN_BATCH } from '../../../src/store/console/batches.ts'
import * as jobs from '../../../src/store/console/jobs.ts'
import * as names from '../../../src/store/console/names.ts'
import type { Db } from '../../../src/store/pool.ts'
import type { Sight } from '../../../src/store/sight.ts'
import { formatReuseToken, parseReuseToken } from '../../../src/token/token.ts'
import type { JobReader, ReadAnnouncement } from '../../operate/job-reader.ts'
import { findCopy } from './undecided.ts'

export interface ReaderDeps {
  store: Db
  /** Undefined: they don't answer. */
  queues: Queues | undefined
  /** ms since the epoch. */
  now: number
}

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

export function readerOf(sight: Sight, { store, queues, now }: ReaderDeps): JobReader {
  let clients: Promise<jobs.SeenClient[]> | undefined
  const listClients = () => {
    clients ??= jobs.listClients(sight, store)
    return clients
  }
  return {
    clients: listClients,
    receipts: ids => jobs.listReceipts(sight, store, ids),
    told: ids => jobs.findTold(sight, store, ids),
    async announcements(receiptId) {
      return (await jobs.listAnswers(sight, store, receiptId)).map(answer => announcementOf(receiptId, answer))
    },
    operation: receiptId => jobs.findOperation(sight, store, receiptId),
    calls: receiptId => jobs.listCalls(sight, store, receiptId),
    async tokenName(tokenId) {
      const token = await names.findToken(sight, store, tokenId)
      return token && nameOf(token)
    },
    async token(name) {
      const id = parseReuseToken(name) ?? (UUID.test(name) ? name.toLowerCase() : undefined)
      const token = id === undefined ? undefined : await names.findToken(sight, store, id)
      return token && { ...token, name: nameOf(token) }
    },
    byReference: (reference, limit) => names.findByReference(sight, store, reference, limit),
    byToken: (tokenId, limit) => names.findByToken(sight, store, tokenId, limit),
    async batches(batchId) {
      return (await findById(sight, store, { batchId }, SEEN_BATCH)).map(batch => ({
        ...batch,
        state: stateOf(batch, now),
      }))
    },
    async failed(name) {
      const copy = queues && (await findCopy(name, { queues, clients: await listClients() }))
      return copy ? [copy] : []
    },
  }
}

/** The token as senders know it; one of a third party by its id alone. */
function nameOf({ tokenId, thirdPartyType }: names.SeenToken): string {
  return thirdPartyType === null ? formatReuseToken(tokenId) : tokenId
}

const Details = Problem.shape.details

function announcementOf(
  receiptId: string,
  { jti, code, details, ...row }: Awaited<ReturnType<typeof jobs.listAnswers>>[number],
): ReadAnnouncement {
  const named = { ...row, resultId: row.resultId ?? resultId(receiptId, row.revision) }
  if (code === null) return named
  const reasons = Object.entries(Details.safeParse(details ?? {}).data ?? {})
  const listed = reasons.map(([field, { code: reason, message }]) => ({ field, reason, text: message }))
  return { ...named, says: { code, ...(jti === null ? {} : { jti }), reasons: listed } }
}
