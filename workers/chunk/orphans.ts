// Tokens that have lost their last owner by the claims of a chunk: the batch's `on_orphan` says what becomes of them.
import type { OnOrphan } from '../../src/job/choices.ts'
import type { ChunkContext } from './chunk.ts'

/** What is done to a token without owners; undefined: nothing. */
export function orphanPolicy({ work }: Pick<ChunkContext, 'work'>): Exclude<OnOrphan, 'keep'> | undefined {
  const onOrphan = work.request.policy?.on_orphan ?? 'keep'
  return onOrphan === 'keep' ? undefined : onOrphan
}
