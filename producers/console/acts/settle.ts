// Sends a stored act with its proof, waits a little for the verdict, and keeps it with the act.

import type { Act } from '../../../src/job/system/act.ts'
import { describeError } from '../../../src/log.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import type { ConsoleDeps } from '../deps.ts'
import type { Unproved } from './request.ts'

/** How long the answer to a form waits for the verdict, in ms; after that the page asks again by itself. */
const WAIT_MS = 8_000

const SILENT: pendingActs.Verdict = {
  done: false,
  reason: 'no_answer',
  text: 'No worker answered in time. The act may still have been done: look at the batch.',
}

/** The verdict, if it comes soon. It is stored whenever it comes, unless this process ends before. */
export async function settleAct(
  { store, sendAct, log }: Pick<ConsoleDeps, 'store' | 'sendAct' | 'log'>,
  request: Unproved,
  proof: Act['proof'],
): Promise<pendingActs.Verdict | undefined> {
  const settled = (async () => {
    const verdict = (await sendAct({ ...request, proof })) ?? SILENT
    await pendingActs.setVerdict(store, request.nonce, verdict)
    return verdict
  })()
  settled.catch(error => log.warn({ error: describeError(error) }, 'the verdict of an act was not kept'))
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(() => resolve(undefined), WAIT_MS)
  })
  return Promise.race([settled, late]).finally(() => clearTimeout(timer))
}
