// When the data of a chunk's records was given at its source. Data of a batch without `newest` counts as given when the
// batch was accepted.
import { type Refusal, refuse } from '../../src/errors.ts'
import type { TokenBatch } from '../../src/job/token-batch.ts'
import { parseUtc } from '../../src/token/capture-time.ts'
import type { Giver } from '../../src/token/token.ts'
import type { ChunkContext } from './chunk.ts'

/** How many digits of the input's digest are kept with each field; they only order inputs of the same time. */
const INPUT_DIGITS = 16
/** `accepted_at` is in whole seconds. */
const ROUNDED_MS = 1_000

export function isNewest({ policy }: Pick<TokenBatch, 'policy'>): boolean {
  return policy?.on_conflict === 'newest'
}

/**
 * Refuses a source time or a digest of the input without `newest`, and `newest` for other records than creates or
 * without the digest.
 */
export function sourceTimeRefusal({ record_kind, policy }: TokenBatch): Refusal | undefined {
  const at = 'body.request.policy'
  if (!isNewest({ policy })) {
    const stray = (['source_time', 'input_sha256'] as const).find(name => policy?.[name] !== undefined)
    return stray && refuse('field_conflict', `${at}.${stray}`)
  }
  if (record_kind !== 'token-create') return refuse('field_conflict', `${at}.on_conflict`)
  return policy?.input_sha256 === undefined ? refuse('field_required', `${at}.input_sha256`) : undefined
}

/**
 * The giver of a record's data. A refusal if a source time is missing, invalid, in the future or not permitted.
 * `sourceTime`: the record's own source time.
 */
export function giverOf(
  { line, sourceTime }: { line: number; sourceTime?: string | undefined },
  { work: { request }, acceptedAt }: Pick<ChunkContext, 'work' | 'acceptedAt'>,
): Giver | Refusal {
  if (!isNewest(request))
    return sourceTime === undefined ? [acceptedAt, '', line] : refuse('field_conflict', 'body.source_time')
  const text = sourceTime ?? request.policy?.source_time
  const time = text === undefined ? undefined : parseUtc(text)
  if (time === undefined) return refuse('source_time_invalid', 'body.source_time')
  if (isFuture(time, acceptedAt)) return refuseTime()
  return [Math.floor(time), (request.policy?.input_sha256 ?? '').slice(0, INPUT_DIGITS), line]
}

/** Whether a source time lies after the time at which the batch was accepted. */
export function isFuture(time: number, acceptedAt: number): boolean {
  return time >= acceptedAt + ROUNDED_MS
}

export const refuseTime = (): Refusal => refuse('source_time_future', 'body.source_time')
