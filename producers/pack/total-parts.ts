// Cuts the batches of a total into parts of up to 20,000 rows, each of which is a job. So a job takes seconds, and its
// digests about half a megabyte.
import * as clients from '../../src/store/access/clients.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import { lastChunk } from '../../src/store/job/receipt-search.ts'
import type { Db } from '../../src/store/pool.ts'
import type { Part } from '../../src/store/total/total-parts.ts'
import { FileError } from '../rows/file-error.ts'

const ROWS_PER_PART = 20_000

/** The parts, the last of which merges the others, and the entity in whose name their jobs are sent. */
export async function openParts(
  db: Db,
  batches: readonly Batch[],
): Promise<{ rows: Omit<Part, 'totalId'>[]; entityId: string }> {
  const rows: Omit<Part, 'totalId'>[] = []
  for (const { batchNo, chunkRecords } of batches) {
    const chunks = ((await lastChunk(db, batchNo)) ?? -1) + 1
    const perPart = Math.max(1, Math.floor(ROWS_PER_PART / chunkRecords))
    for (let chunkFrom = 0; chunkFrom < chunks; chunkFrom += perPart) {
      const chunkTo = Math.min(chunkFrom + perPart, chunks)
      rows.push({ part: rows.length, batchNo, chunkFrom, chunkTo })
    }
  }
  rows.push({ part: rows.length, batchNo: null, chunkFrom: 0, chunkTo: 0 })
  return { rows, entityId: await entityOf(db, batches) }
}

async function entityOf(db: Db, batches: readonly Batch[]): Promise<string> {
  for (const { clientId } of batches) {
    const [entityId] = (await clients.find(db, clientId))?.entities ?? []
    if (entityId !== undefined) return entityId
  }
  throw new FileError('usage', 'The client of these batches acts for no entity.', 'Name batches of another client.')
}
