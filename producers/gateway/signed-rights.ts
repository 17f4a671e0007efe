// The rows of clients, of their keys and of scopes that the installation's list of live keys names. A gateway has no key to
// check the code of a row; the list is signed by workers, who have one.
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../src/clock.ts'
import { Fault } from '../../src/errors.ts'
import { LIVE_KEYS, type LiveKeys, openLiveKeys, rightsHash } from '../../src/job/answer/live-keys.ts'
import type { Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import * as liveList from '../../src/store/access/live-list.ts'
import type { Store } from '../../src/store/pool.ts'
import type { SigningKeys } from '../signing-keys.ts'

/** Workers sign a change within about a second. A row that isn't in the list is looked for again, so often and at this distance. */
const AGAIN = { times: 12, ms: 250 } as const

export interface SignedRights {
  /**
   * Whether the list names a row by this text (src/vault/ring/grants.ts); true if there are more rows than a list may name.
   * It waits up to 3 s for a list that does. Throws `Fault('rights_unknown')` if there is no list.
   */
  has(text: string): Promise<boolean>
  /** Why nobody can sign in; empty if there is a list. */
  reasons(): string[]
  stop(): Promise<void>
}

interface Opened {
  store: Store
  audience: string
  trusted: Pick<SigningKeys, 'keys' | 'renew'>
  clock: Clock
  log: Logger
}

export async function openSignedRights({ store, audience, trusted, clock, log }: Opened): Promise<SignedRights> {
  /** The newest list that was ever read here: a former one, or none, that somebody puts in its place changes nothing. */
  let newest: (LiveKeys & { set: ReadonlySet<string> | undefined }) | undefined

  async function look(): Promise<void> {
    const jws = await liveList.findSigned(store, newest?.seq ?? 0)
    if (jws === undefined) return
    const list = openLiveKeys(jws, audience, trusted.keys) ?? (await openAgain(jws))
    // By time and not by number: in a database that was restored the numbers begin at an earlier one.
    if (!list || list.iat <= (newest?.iat ?? 0) || list.iat * 1000 > clock() + LIVE_KEYS.aheadMsMax) return
    newest = { ...list, set: list.rights && new Set(list.rights) }
  }
  /** The key that signed it may have been announced a moment ago. */
  async function openAgain(jws: string): Promise<LiveKeys | undefined> {
    await trusted.renew([])
    return openLiveKeys(jws, audience, trusted.keys)
  }
  const names = (hash: string) => newest !== undefined && (newest.set?.has(hash) ?? true)
  await look()
  const stop = every(LIVE_KEYS.everyMs, look, { log })
  return {
    async has(text) {
      const hash = rightsHash(text)
      for (let time = 0; !names(hash) && time < AGAIN.times; time += 1) {
        if (time > 0) await delay(AGAIN.ms)
        await look()
      }
      if (newest === undefined) throw new Fault('rights_unknown')
      return names(hash)
    },
    reasons: () => (newest === undefined ? ['no worker has signed yet which clients are live'] : []),
    stop,
  }
}
