// Sends one chunk of a batch and awaits its answer, for whoever has cut the chunk out of a file or of a list.
import { isRefusal } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { untilSent } from '../client/bulk.ts'
import { RefusedError } from '../client/errors.ts'
import type { Client } from '../client/interface.ts'
import { type BatchPlan, type Chunk, tokenBatch } from '../token-batch.ts'

export interface ChunkOptions {
  timeoutMs: number
  /** The answer may tell of the records in columns (`SubmitOptions.resultColumns`). */
  resultColumns: boolean
  /** Ends the wait for a queue server that is away. */
  stop: AbortSignal
}

/**
 * Rejects as `call` does, and with `RefusedError` for a batch whose names or policies have another form. The queue is waited
 * for until `stop` is aborted.
 */
export async function sendChunk(
  client: Pick<Client, 'clientId' | 'call'>,
  plan: BatchPlan,
  chunk: Chunk,
  { timeoutMs, resultColumns, stop }: ChunkOptions,
): Promise<Result> {
  const ask = await tokenBatch(client.clientId, plan, chunk)
  if (isRefusal(ask)) throw new RefusedError(ask, plan.acceptedAt * 1_000)
  const given = { jti: ask.jti, block: ask.block, timeoutMs, resultColumns }
  return untilSent(() => client.call('token-batch', ask.request, given), stop)
}
