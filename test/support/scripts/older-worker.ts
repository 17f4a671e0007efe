// A worker process of a release before transactions in columns: it refuses the member `columns` as one that it doesn't
// know. It isn't older in anything else.
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'
import { KINDS } from '../../../src/job/composition.ts'
import { TransactionBatch } from '../../../src/job/transaction-batch.ts'

const { columns: _, transactions, ...shape } = TransactionBatch.shape
const request = z.strictObject({ ...shape, transactions: transactions.min(1) })
Object.assign(KINDS['transaction-batch'], { request })

await runWorkerProcess({ script: fileURLToPath(import.meta.url) })
