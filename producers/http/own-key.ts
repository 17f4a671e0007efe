// Whether the key by which this process signs is live. Workers drop what another key signs, without an answer: so the process
// asks, and doesn't keep its callers waiting for what nobody will do.
import type { Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'

const LOOK_MS = 5_000

export interface OwnKey {
  isLive(): boolean
  /** Why the process can't work; empty if its key is live. */
  reasons(): Promise<string[]>
  stop(): Promise<void>
}

/** `ask`: whether the key is live. While that isn't known, it counts as it did before. */
export async function watchOwnKey(
  { clientId, kid }: { clientId: string; kid: string },
  { ask, log }: { ask: () => Promise<boolean>; log: Logger },
  everyMs: number = LOOK_MS,
): Promise<OwnKey> {
  let isLive = true
  const look = async () => {
    const was = isLive
    isLive = await ask()
    if (was && !isLive) log.error({ kid }, 'the key of this process is not live: workers do nothing that it signs')
    if (!was && isLive) log.info({ kid }, 'the key of this process is live again')
  }
  await look()
  const stop = every(everyMs, look, { log })
  const says = `the key of this ${clientId} (${kid}) is not live: copy the file that \`tokenmill system rotate ${clientId}\` wrote, and restart this process`
  return {
    isLive: () => isLive,
    reasons: async () => (isLive ? [] : [says]),
    stop,
  }
}
