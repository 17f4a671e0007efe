// Finds out whether a sender's signing key is live. Workers never answer a sender whose key isn't live; they only
// publish a list of live keys (src/job/live-keys.ts). The check is slow rather than wrong, and without a list it says
// nothing.
import type { Clock } from '../src/clock.ts'
import { keyHash, LIVE_KEYS, type LiveKeys } from '../src/job/answer/live-keys.ts'
import { CONTRACT } from '../src/job/choices.ts'
import type { Queues } from '../src/queue/engine.ts'
import type { Credentials } from './client/client-file.ts'
import type { TrustedKeys } from './client/trusted-keys.ts'

/** `why`: a sentence for a person about why the state isn't known. */
export type KeyState =
  | { is: 'live' | 'gone' }
  | { is: 'unknown'; why?: string }
  /** The installation speaks another version of the contract. */
  | { is: 'foreign'; contract: number }

/** One check; it is repeated while somebody waits for an answer. A rejection says nothing about the key. */
export type KeyCheck = () => Promise<KeyState>

const UNKNOWN_BECAUSE = {
  none: 'no worker says which keys are live',
  forbidden: 'this Redis user may not read which keys are live (docs/upstream.md)',
  forged:
    "the list of live keys is not signed by an installation key of the client's file; is it of this installation?",
  old: 'the list of live keys is not of now; are the clocks of this host and of the database right?',
  replayed: 'the list of live keys is older than one seen before',
} as const
const unknown = (why?: keyof typeof UNKNOWN_BECAUSE): KeyState =>
  why ? { is: 'unknown', why: UNKNOWN_BECAUSE[why] } : { is: 'unknown' }

/** The key counts as gone when this many lists in a row don't have it. */
const LISTS_MIN = 2

/** Makes a function that checks the list that workers publish. Each call is one check. */
export function openListCheck(
  queues: Pick<Queues, 'notice'>,
  { signingKey, trusted }: Pick<Credentials, 'signingKey'> & { trusted: Pick<TrustedKeys, 'openList'> },
  clock: Clock,
): KeyCheck {
  const own = keyHash(signingKey)
  const beganAt = clock()
  /** The highest `seq` so far; undefined until the first check was answered. */
  let seen: number | undefined
  let lacking = 0

  /** Why the list can't be used; undefined if it shows the current state. */
  function wrongWith({ iat, seq }: LiveKeys): keyof typeof UNKNOWN_BECAUSE | undefined {
    if (seq < (seen ?? 0)) return 'replayed'
    const ageMs = clock() - iat * 1000
    return ageMs > LIVE_KEYS.lifeMs || ageMs < -LIVE_KEYS.aheadMsMax ? 'old' : undefined
  }
  function judge({ iat, seq, keys }: LiveKeys): KeyState {
    // Whether the list was signed after checking began. The list of the first check is older than that check, whatever
    // the two clocks say.
    const isNew = seen !== undefined && seq > seen && iat * 1000 >= beganAt
    seen = Math.max(seen ?? 0, seq)
    if (!keys || keys.includes(own)) {
      lacking = 0
      return keys ? { is: 'live' } : unknown()
    }
    if (isNew) lacking += 1
    return lacking >= LISTS_MIN ? { is: 'gone' } : unknown()
  }
  return async () => {
    const { text, permitted } = await queues.notice('live-keys')
    if (!permitted) return unknown('forbidden')
    if (text === undefined) {
      seen ??= 0
      return unknown('none')
    }
    const list = await trusted.openList(text)
    const fault = list ? wrongWith(list) : 'forged'
    if (!list || fault) return unknown(fault)
    const { contract = CONTRACT } = list
    return contract === CONTRACT ? judge(list) : { is: 'foreign', contract }
  }
}

export interface KeyWatch {
  /** Makes the first check. */
  start(): void
  stop(): void
}

export interface KeyWatchOptions {
  /** Whether somebody waits for an answer; only then checks are made. */
  isWaiting: () => boolean
  onGone: () => void
  onForeign: (contract: number) => void
  /** Called once with one line, if it can't be found out whether the key is live. */
  tell: (line: string) => void
  everyMs?: number | undefined
}

/** Checks at once, and then every 5 s while somebody waits. */
export function watchKey(open: () => KeyCheck, options: KeyWatchOptions): KeyWatch {
  const { isWaiting, onGone, onForeign, tell, everyMs = LIVE_KEYS.everyMs } = options
  let checkOnce = open()
  let timer: NodeJS.Timeout | undefined
  let checking = false
  let told = false

  async function check(isFirst: boolean): Promise<void> {
    if (checking) return
    checking = true
    const state: KeyState = await checkOnce().catch(() => unknown())
    checking = false
    if (state.is === 'gone') {
      // The next check starts from the beginning, because the key may have become live.
      checkOnce = open()
      onGone()
    }
    if (state.is === 'foreign') onForeign(state.contract)
    // Nothing is said at the first check: most jobs are answered before anybody needs to know.
    if (state.is !== 'unknown' || state.why === undefined || told || isFirst || !isWaiting()) return
    told = true
    tell(`${state.why}. The sender can't know whether this client's key is live; it goes on waiting ...`)
  }
  return {
    start() {
      if (timer) return
      void check(true)
      timer = setInterval(() => {
        if (isWaiting()) void check(false)
      }, everyMs)
    },
    stop: () => clearInterval(timer),
  }
}
