// Makes copies in the failed set, as workers make them, of jobs that nobody works in these tests: reports.
import { randomUUID } from 'node:crypto'
import type { Credentials } from '../../../producers/client/client-file.ts'
import { signAsk } from '../../../producers/envelope.ts'
import { isRefusal } from '../../../src/errors.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { type FailedCopy, moveToFailed } from '../../../src/queue/failed.ts'
import { withoutCard } from '../../../workers/process/housekeeping.ts'

export const KIND = 'report'
const REQUEST = {
  report_type: 'BATCH_REPORT',
  entity_id: '00000000-0000-4000-8000-000000000000',
  parameters: { batchId: 'b' },
  mime_type: 'text/csv',
} as const

export interface Failing {
  credentials: Credentials
  failedAt?: number
  code?: string
  reference?: string
  jti?: string
  /** Its card data were removed. */
  isEmptied?: boolean
  copy?: Partial<FailedCopy>
}

/** The id of the copy, and of its job. */
export async function failCopy(
  queues: Queues,
  { credentials, failedAt = Date.now() - 60_000, ...failing }: Failing,
): Promise<{ id: string; jobId: string }> {
  const { code = 'files_away', jti = `failed-${randomUUID()}`, reference } = failing
  const options = { jti, ...(reference === undefined ? {} : { reference }) }
  const signed = await signAsk(credentials, { kind: KIND, request: REQUEST }, options, Date.now())
  if (isRefusal(signed)) throw new Error(signed.reason)
  const { clientId } = credentials.signingKey
  const copy: FailedCopy = {
    jws: signed.data.jws,
    kind: KIND,
    code,
    attempt: 8,
    failedAt,
    jobId: signed.id,
    clientId,
    jti,
    ...(reference === undefined ? {} : { reference }),
    ...failing.copy,
  }
  const kept = failing.isEmptied ? withoutCard({ ...copy, block: 'ciphertext' }) : copy
  const id = await moveToFailed(queues, KIND, { id: signed.id, enqueuedAt: failedAt }, kept)
  return { id, jobId: signed.id }
}
