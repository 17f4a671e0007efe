// What the readers of the command and of the console's page ask the store alike: every statement takes the sight of who asks.
import { textOf } from '../../src/errors.ts'
import { resultId } from '../../src/job/envelope/ids.ts'
import { reasonsIn } from '../../src/job/problem.ts'
import * as jobs from '../../src/store/explain/jobs.ts'
import * as names from '../../src/store/explain/names.ts'
import type { Db } from '../../src/store/pool.ts'
import type { Sight } from '../../src/store/sight.ts'
import type { JobReader, ReadAnnouncement } from './job-reader.ts'

export function storeReader(
  sight: Sight,
  db: Db,
): Omit<JobReader, 'tokenName' | 'token' | 'batches' | 'failed' | 'rows'> {
  let clients: Promise<jobs.SeenClient[]> | undefined
  return {
    clients() {
      clients ??= jobs.listClients(sight, db)
      return clients
    },
    receipts: ids => jobs.listReceipts(sight, db, ids),
    told: ids => jobs.findTold(sight, db, ids),
    async announcements(receiptId) {
      return (await jobs.listAnswers(sight, db, receiptId)).map(answer => announcementOf(receiptId, answer))
    },
    operation: receiptId => jobs.findOperation(sight, db, receiptId),
    calls: receiptId => jobs.listCalls(sight, db, receiptId),
    byReference: (reference, limit) => names.findByReference(sight, db, reference, limit),
    byToken: (tokenId, limit) => names.findByToken(sight, db, tokenId, limit),
  }
}

function announcementOf(
  receiptId: string,
  { jti, code, details, ...row }: Awaited<ReturnType<typeof jobs.listAnswers>>[number],
): ReadAnnouncement {
  const named = { ...row, resultId: row.resultId ?? resultId(receiptId, row.revision) }
  if (code === null) return named
  const reasons = reasonsIn({ details }).map(one => ({ ...one, text: textOf(one) }))
  return { ...named, says: { code, ...(jti === null ? {} : { jti }), reasons } }
}
