// Publishes, in a list that the installation signs, which keys are live and what every live worker understands: on each
// change, and every few seconds. Any worker process may publish it. On the PostgreSQL engine there is no list: a sender
// asks the store.
import { LIVE_KEYS, makeLiveKeys, sealLiveKeys } from '../../src/job/live-keys.ts'
import type { InstallationKey } from '../../src/job/result.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { every } from '../../src/recurring.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as liveList from '../../src/store/access/live-list.ts'
import * as processes from '../../src/store/access/processes.ts'
import type { Deps } from '../deps.ts'

type TellDeps = Pick<Deps, 'store' | 'queues' | 'log'>

const LOOK_MS = 1_000
/** One second less: a turn is looked for once a second. */
const TURN_MS = LIVE_KEYS.everyMs - LOOK_MS
/** A worker that hangs still counts for as long as its jobs stay its own. */
const BELIEVED_MS = 60_000

/** Tells the list whenever it is this process's turn; returns how to stop. */
export function tellLiveKeys(deps: TellDeps, audience: string, key: InstallationKey): () => Promise<void> {
  if (deps.queues.engine === 'postgres') return async () => {}
  return every(LOOK_MS, () => tellOnce(deps, audience, key), deps)
}

async function tellOnce({ store, queues }: TellDeps, audience: string, key: InstallationKey): Promise<void> {
  const turn = await liveList.takeTurn(store, TURN_MS)
  if (!turn) return
  const features = await commonFeatures(queues, await processes.listWorkers(store, BELIEVED_MS))
  const live = await clients.listLiveKeys(store, LIVE_KEYS.keysMax + 1)
  const list = makeLiveKeys({ aud: audience, iat: turn.at / 1000, seq: turn.seq, features }, live)
  await queues.setNotice('live-keys', sealLiveKeys(list, key), LIVE_KEYS.lifeMs)
}

/**
 * What every live worker understands: what all say of themselves, and nothing at all while a queue has more listeners
 * than have said so, for then a worker of a release that doesn't say it is among them.
 */
export async function commonFeatures(
  queues: Pick<Queues, 'workersOf'>,
  workers: readonly processes.LiveWorker[],
): Promise<string[]> {
  const [first, ...others] = workers
  const common = (first?.features ?? []).filter(word => others.every(({ features }) => features.includes(word)))
  // The usual case, in which the queue server needn't be asked.
  if (common.length === 0) return []
  for (const kind of new Set(workers.flatMap(({ kinds }) => kinds))) {
    const listening = await queues.workersOf(kind)
    if (listening === undefined || listening > workers.filter(({ kinds }) => kinds.includes(kind)).length) return []
  }
  return common
}
