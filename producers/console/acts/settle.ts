// Sends a stored act with its proof, waits a little for the verdict, and keeps it with the act; says later what it was.

import type { Act } from '../../../src/job/system/act.ts'
import { describeError } from '../../../src/logger.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import { AFTER_MS } from '../act-sender.ts'
import type { ConsoleDeps } from '../deps.ts'
import type { Unproved } from './request.ts'

/** After the end of an act and the time of waiting for its answer, nobody keeps its verdict any more. In ms. */
const KEPT_WITHIN_MS = AFTER_MS + 5_000

/** How long the answer to a form waits for the verdict, in ms; after that the page asks again by itself. */
const WAIT_MS = 8_000

/**
 * The verdict, if it comes soon. It is stored whenever it comes, unless the store fails or this process ends before; the page
 * of the act says then that it isn't known. Never rejects.
 */
export async function settleAct(
  { store, sendAct, log }: Pick<ConsoleDeps, 'store' | 'sendAct' | 'log'>,
  request: Unproved,
  proof: Act['proof'],
): Promise<pendingActs.Verdict | undefined> {
  const settled = (async () => {
    const verdict = await sendAct({ ...request, proof }).catch((error): pendingActs.Verdict => {
      log.error({ error: describeError(error) }, 'an act was not sent, or its answer was lost')
      return { done: null }
    })
    await pendingActs
      .setVerdict(store, request.nonce, verdict)
      .catch(error => log.warn({ error: describeError(error) }, 'the verdict of an act was not kept'))
    return verdict
  })()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(() => resolve(undefined), WAIT_MS)
  })
  return Promise.race([settled, late]).finally(() => clearTimeout(timer))
}

/** The verdict; null while it may still come. The process that waited for it may have ended, or the store not have kept it. */
export function verdictAt(
  { verdict, expiresAt }: Pick<pendingActs.SentAct, 'verdict' | 'expiresAt'>,
  now: number,
): pendingActs.Verdict | null {
  return verdict === null && now >= expiresAt + KEPT_WITHIN_MS ? { done: null } : verdict
}
