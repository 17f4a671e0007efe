// Publishes the list of live keys, signed by the installation, with the features that every live worker understands: on
// each change, and every few seconds. Any worker process may publish it. Gateways read it from the store. Senders read it
// from Redis; on the PostgreSQL engine a sender asks the store which keys are live.

import {
  isNamed,
  LIVE_KEYS,
  type LiveRows,
  makeLiveKeys,
  rightsHash,
  sealLiveKeys,
} from '../../src/job/answer/live-keys.ts'
import type { Signing } from '../../src/job/answer/result.ts'
import { CONTRACT } from '../../src/job/choices.ts'
import { commonFeatures, SPEAKING } from '../../src/job/envelope/features.ts'
import { describeError } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import type { ClientKey } from '../../src/store/access/clients.ts'
import * as liveKeys from '../../src/store/access/live-keys.ts'
import * as liveList from '../../src/store/access/live-list.ts'
import * as processes from '../../src/store/access/processes.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import { clientKeyText, clientText, isGranted, scopeText } from '../../src/vault/ring/grants.ts'
import { withReload } from '../../src/vault/ring/reload.ts'
import type { Deps } from '../deps.ts'

type TellDeps = Pick<Deps, 'store' | 'queues' | 'log' | 'catalogue' | 'ring'>

const LOOK_MS = 1_000
/** One second less than the interval, because turns are looked for once a second. */
const TURN_MS = LIVE_KEYS.everyMs - LOOK_MS

/** Publishes the list whenever it is this process's turn. Returns a function that stops this. */
export function tellLiveKeys(deps: TellDeps, audience: string, signing: () => Signing): () => Promise<void> {
  return every(LOOK_MS, () => tellOnce(deps, audience, signing), deps)
}

/** Publishes the list at once: senders wait for what a worker understands that has just begun to listen. */
export async function tellBegin(deps: TellDeps, audience: string, signing: () => Signing): Promise<void> {
  await tellOnce(deps, audience, signing, 0).catch(error => {
    deps.log.debug({ error: describeError(error) }, 'the list of live keys was not published at the beginning')
  })
}

async function tellOnce(deps: TellDeps, audience: string, signing: () => Signing, turnMs = TURN_MS): Promise<void> {
  const { store, queues, catalogue } = deps
  const turn = await liveList.takeTurn(store, turnMs)
  if (!turn) return
  const workers = await processes.listWorkers(store, SPEAKING.countedMs)
  const features = await commonFeatures(queues, workers, catalogue.kinds)
  const live = await withReload(deps.ring, () => listLive(deps))
  const { key, newKeys } = signing()
  const head = { aud: audience, iat: turn.at / 1000, seq: turn.seq, contract: CONTRACT, features }
  const list = sealLiveKeys(makeLiveKeys(newKeys.length > 0 ? { ...head, new_keys: [...newKeys] } : head, live), key)
  await liveList.keep(store, turn, list)
  await queues.setNotice('live-keys', list, LIVE_KEYS.lifeMs)
}

/** Pages are small, so that checking the codes of one holds up no job. */
const PAGE_ROWS = 250

/**
 * The rows that a worker believes now, or at least one more than a list may name. Rows without a right code don't count, so
 * nobody can fill the list with them.
 */
async function listLive(deps: Pick<TellDeps, 'store' | 'ring'>): Promise<LiveRows> {
  const keys: ClientKey[] = []
  const rights: string[] = []
  for await (const live of liveClients(deps)) {
    keys.push(...live.keys)
    for (const text of [...live.clients.map(clientText), ...live.keys.map(clientKeyText)]) rights.push(rightsHash(text))
    if (!isNamed({ keys, rights })) return { keys, rights }
  }
  for await (const live of liveScopes(deps)) {
    for (const scope of live) rights.push(rightsHash(scopeText(scope)))
    if (!isNamed({ keys, rights })) break
  }
  return { keys, rights }
}

/** Clients and their keys, in pages. */
async function* liveClients({ store, ring }: Pick<TellDeps, 'store' | 'ring'>) {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await liveKeys.listLiveClients(store, { after, limit: PAGE_ROWS })
    after = page.at(-1)?.clientId
    const clients = page.filter(client => isGranted(ring, clientText(client), client))
    const ids = clients.map(({ clientId }) => clientId)
    const keys = ids.length > 0 ? await liveKeys.listLiveKeys(store, ids) : []
    yield { clients, keys: keys.filter(key => isGranted(ring, clientKeyText(key), key)) }
  }
}

async function* liveScopes({ store, ring }: Pick<TellDeps, 'store' | 'ring'>) {
  for (let after: string | undefined = scopes.FIRST; after !== undefined; ) {
    const page: scopes.Scope[] = await scopes.listAfter(store, { after, limit: PAGE_ROWS })
    after = page.at(-1)?.tokenScope
    yield page.filter(scope => isGranted(ring, scopeText(scope), scope))
  }
}
