// Publishes the list of live keys, signed by the installation, with the features that every live worker understands: on
// each change, and every few seconds. Any worker process may publish it. On the PostgreSQL engine there is no list: a
// sender asks the store.

import { LIVE_KEYS, makeLiveKeys, sealLiveKeys } from '../../src/job/answer/live-keys.ts'
import type { Signing } from '../../src/job/answer/result.ts'
import { commonFeatures, SPEAKING } from '../../src/job/envelope/features.ts'
import { describeError } from '../../src/log.ts'
import { every } from '../../src/recurring.ts'
import * as liveKeys from '../../src/store/access/live-keys.ts'
import * as liveList from '../../src/store/access/live-list.ts'
import * as processes from '../../src/store/access/processes.ts'
import type { Deps } from '../deps.ts'

type TellDeps = Pick<Deps, 'store' | 'queues' | 'log' | 'catalogue'>

const LOOK_MS = 1_000
/** One second less than the interval, because turns are looked for once a second. */
const TURN_MS = LIVE_KEYS.everyMs - LOOK_MS

/** Publishes the list whenever it is this process's turn. Returns a function that stops this. */
export function tellLiveKeys(deps: TellDeps, audience: string, signing: () => Signing): () => Promise<void> {
  if (deps.queues.engine === 'postgres') return async () => {}
  return every(LOOK_MS, () => tellOnce(deps, audience, signing), deps)
}

/** Publishes the list at once: senders wait for what a worker understands that has just begun to listen. */
export async function tellBegin(deps: TellDeps, audience: string, signing: () => Signing): Promise<void> {
  if (deps.queues.engine === 'postgres') return
  await tellOnce(deps, audience, signing, 0).catch(error => {
    deps.log.debug({ error: describeError(error) }, 'the list of live keys was not published at the beginning')
  })
}

async function tellOnce(
  { store, queues, catalogue }: TellDeps,
  audience: string,
  signing: () => Signing,
  turnMs = TURN_MS,
): Promise<void> {
  const turn = await liveList.takeTurn(store, turnMs)
  if (!turn) return
  const workers = await processes.listWorkers(store, SPEAKING.countedMs)
  const features = await commonFeatures(queues, workers, catalogue.kinds)
  const live = await liveKeys.listLiveKeys(store, LIVE_KEYS.keysMax + 1)
  const { key, newKeys } = signing()
  const head = { aud: audience, iat: turn.at / 1000, seq: turn.seq, features }
  const list = makeLiveKeys(newKeys.length > 0 ? { ...head, new_keys: [...newKeys] } : head, live)
  await queues.setNotice('live-keys', sealLiveKeys(list, key), LIVE_KEYS.lifeMs)
}
