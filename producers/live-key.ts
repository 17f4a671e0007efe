// Finds out whether the key that a sender signs with is live. Workers never answer a sender whose key isn't live; they
// only publish a list of live keys (src/job/envelope/live-keys.ts). The check would rather conclude late than wrongly, and
// concludes nothing where there is no list.
import type { Clock } from '../src/clock.ts'
import { ConfigError } from '../src/config.ts'
import { keyHash, LIVE_KEYS, type LiveKeys, openLiveKeys } from '../src/job/envelope/live-keys.ts'
import type { Queues } from '../src/queue/engine.ts'
import type { Credentials } from './client-file.ts'

/** `why` tells a person why the state isn't known. */
export type KeyState = { is: 'live' | 'gone' } | { is: 'unknown'; why?: string }

/** One check, repeated as long as somebody waits. A rejection tells nothing about the key. */
export type KeyCheck = () => Promise<KeyState>

/** The installation takes no job under this key: revoked, retired, or of another installation. */
export class KeyNotLiveError extends ConfigError {
  override name = 'KeyNotLiveError'

  constructor({ clientId, kid }: { clientId: string; kid: string }) {
    super(
      `the installation takes nothing from client ${clientId} under key ${kid}: it is unknown there, revoked or past its end. Use the client's current file, or ask the operator`,
    )
  }
}

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

/** The key is gone when so many lists in a row lack it. */
const LISTS_MIN = 2

/** Checks the list that workers publish. Each call is one check. */
export function openListCheck(
  queues: Pick<Queues, 'notice'>,
  { signingKey, audience, installationKeys }: Pick<Credentials, 'signingKey' | 'audience' | 'installationKeys'>,
  clock: Clock,
): KeyCheck {
  const own = keyHash(signingKey)
  const beganAt = clock()
  /** The highest `seq` that was seen; undefined until the first check was answered. */
  let seen: number | undefined
  let lacking = 0

  /** Undefined for a list that tells the present state. */
  function wrongWith({ iat, seq }: LiveKeys): keyof typeof UNKNOWN_BECAUSE | undefined {
    if (seq < (seen ?? 0)) return 'replayed'
    const ageMs = clock() - iat * 1000
    return ageMs > LIVE_KEYS.lifeMs || ageMs < -LIVE_KEYS.aheadMsMax ? 'old' : undefined
  }
  function judge({ iat, seq, keys }: LiveKeys): KeyState {
    // The list of the first check was signed before that check, whatever the two clocks say.
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
    const list = openLiveKeys(text, audience, installationKeys)
    const fault = list ? wrongWith(list) : 'forged'
    return list && !fault ? judge(list) : unknown(fault)
  }
}

export interface KeyWatch {
  /** Does the first check; there is none before. */
  start(): void
  stop(): void
}

export interface KeyWatchOptions {
  /** Whether somebody waits for an answer; there is no check otherwise. */
  isWaiting: () => boolean
  onGone: () => void
  /** Takes one line, once, where it can't be known whether the key is live. */
  tell: (line: string) => void
  everyMs?: number | undefined
}

/** Checks at once and then every 5 s while somebody waits. */
export function watchKey(open: () => KeyCheck, options: KeyWatchOptions): KeyWatch {
  const { isWaiting, onGone, tell, everyMs = LIVE_KEYS.everyMs } = options
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
      // The next check begins anew: the key may have become live.
      checkOnce = open()
      onGone()
    }
    // Not at the first check: most jobs are answered before anybody needs to know.
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
