// Publishes the list of live keys, signed by the installation, with the features that every live worker understands: on
// each change, and every few seconds. Any worker process may publish it. On the PostgreSQL engine there is no list: a
// sender asks the store.
import { commonFeatures, SPEAKING } from '../../src/job/envelope/features.ts'
import { LIVE_KEYS, makeLiveKeys, sealLiveKeys } from '../../src/job/envelope/live-keys.ts'
import type { InstallationKey } from '../../src/job/result.ts'
import { every } from '../../src/recurring.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as liveList from '../../src/store/access/live-list.ts'
import * as processes from '../../src/store/access/processes.ts'
import type { Deps } from '../deps.ts'

type TellDeps = Pick<Deps, 'store' | 'queues' | 'log'>

const LOOK_MS = 1_000
/** One second less than the interval, because turns are looked for once a second. */
const TURN_MS = LIVE_KEYS.everyMs - LOOK_MS

/** Publishes the list whenever it is this process's turn. Returns a function that stops this. */
export function tellLiveKeys(deps: TellDeps, audience: string, key: InstallationKey): () => Promise<void> {
  if (deps.queues.engine === 'postgres') return async () => {}
  return every(LOOK_MS, () => tellOnce(deps, audience, key), deps)
}

async function tellOnce({ store, queues }: TellDeps, audience: string, key: InstallationKey): Promise<void> {
  const turn = await liveList.takeTurn(store, TURN_MS)
  if (!turn) return
  const features = await commonFeatures(queues, await processes.listWorkers(store, SPEAKING.countedMs))
  const live = await clients.listLiveKeys(store, LIVE_KEYS.keysMax + 1)
  const list = makeLiveKeys({ aud: audience, iat: turn.at / 1000, seq: turn.seq, features }, live)
  await queues.setNotice('live-keys', sealLiveKeys(list, key), LIVE_KEYS.lifeMs)
}
