// What every command that sends a file needs, and the checks of a batch's names: the id that a user chooses, and the
// name of the file.
import { basename } from 'node:path'
import type { Clock } from '../src/clock.ts'
import { REASONS } from '../src/errors.ts'
import { resultsQueue } from '../src/job/catalogue.ts'
import { panNameRefusal } from '../src/job/envelope/names.ts'
import { isPrintable } from '../src/job/envelope/text.ts'
import type { Logger } from '../src/logger.ts'
import type { Queues } from '../src/queue/engine.ts'
import { holdsPossiblePan } from '../src/token/possible-pan.ts'
import { untilSent } from './client/bulk.ts'
import type { Credentials } from './client/client-file.ts'
import type { KeyCheck } from './live-key.ts'
import { FileError } from './rows/file-error.ts'

export interface FileRunDeps {
  queues: Queues
  credentials: Credentials
  clock: Clock
  log: Logger
  /** The stream on which progress is shown. */
  stream: NodeJS.WriteStream
  /** When aborted, the run finishes what is in flight. A later run can continue from there. */
  stop: AbortSignal
  resendMs?: number
  /** After this many ms without any answer the run ends incomplete. */
  giveUpAfterMs?: number | undefined
  /** Says whether the client's key is live. For a caller that knows more than the list that workers publish. */
  checkKey?: KeyCheck | undefined
}

/**
 * Discards the answers to an earlier run. This run gets every answer again, from the receipts; an answer that the earlier
 * run left unread could be about an attempt that failed. Waits while the queue server is away.
 */
export async function discardAnswers(
  { queues, credentials, stop }: Pick<FileRunDeps, 'queues' | 'credentials' | 'stop'>,
  replyTo: string,
): Promise<void> {
  const queue = resultsQueue(credentials.signingKey.clientId, replyTo)
  await untilSent(() => queues.obliterate(queue), stop).catch(() => {})
}

/** Throws a FileError for a text that can't be a batch id, or could be a card number. */
export function checkBatchId(batchId: string | undefined, { names = 'checked' }: Pick<Credentials, 'names'>): void {
  if (batchId === undefined) return
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(batchId))
    throw new FileError('usage', '--batch-id takes 1 to 64 letters, digits, _ and -.', 'Choose another.')
  const refusal = panNameRefusal({ request: { batch_id: batchId } }, names)
  if (refusal) throw new FileError('usage', `--batch-id: ${REASONS[refusal.reason].text}`, NUMERIC)
}

const NUMERIC = 'Choose another; or have the operator run `tokenmill client names CLIENT numeric`.'

const SOURCE_NAME_MAX = 255

/**
 * The name of the file that a batch comes from, behind the name of its migration: `MIGRATION/FILE`. It is shown and
 * stored in clear, so a name that could be a card number is left out.
 */
export function nameOfSource(path: string, migration?: string): { name?: string } {
  const name = migration === undefined ? basename(path) : `${migration}/${basename(path)}`
  const isTold = isPrintable(name) && name.length <= SOURCE_NAME_MAX && !holdsPossiblePan(name)
  return isTold ? { name } : {}
}
