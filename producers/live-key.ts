// Finds out whether the key that a sender signs with is live: workers never answer a sender whose key isn't, and say so
// only in a list (src/job/live-keys.ts). It concludes late rather than wrongly, and nothing where there is no list.
import type { Clock } from '../src/clock.ts'
import { ConfigError } from '../src/config.ts'
import { keyHash, LIVE_KEYS, type LiveKeys, openLiveKeys } from '../src/job/live-keys.ts'
import type { Queues } from '../src/queue/engine.ts'
import type { Credentials } from './client-file.ts'

/** `why`: what a person can be told about why it isn't known. */
export type KeyState = { is: 'live' | 'gone' } | { is: 'unknown'; why?: string }

/** One look; asked again as long as somebody waits. May reject, which says nothing. */
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

/** So many lists, one after the other, must lack the key. */
const LISTS_MIN = 2

/** Looks at the list that workers publish. Each call is one look. */
export function openListCheck(
  queues: Pick<Queues, 'notice'>,
  { signingKey, audience, installationKeys }: Pick<Credentials, 'signingKey' | 'audience' | 'installationKeys'>,
  clock: Clock,
): KeyCheck {
  const own = keyHash(signingKey)
  const beganAt = clock()
  /** The highest `seq` that was seen; undefined until the first look was answered. */
  let seen: number | undefined
  let lacking = 0

  /** Undefined for a list that says something about now. */
  function wrongWith({ iat, seq }: LiveKeys): keyof typeof UNKNOWN_BECAUSE | undefined {
    if (seq < (seen ?? 0)) return 'replayed'
    const ageMs = clock() - iat * 1000
    return ageMs > LIVE_KEYS.lifeMs || ageMs < -LIVE_KEYS.aheadMsMax ? 'old' : undefined
  }
  function judge({ iat, seq, keys }: LiveKeys): KeyState {
    // Whatever the two clocks say, what lay there at the first look was signed before it.
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
  /** The first look; nothing before. */
  start(): void
  stop(): void
}

export interface KeyWatchOptions {
  /** Whether somebody waits for an answer: else it needn't look. */
  isWaiting: () => boolean
  onGone: () => void
  /** One line, once, where it can't be known. */
  tell: (line: string) => void
  everyMs?: number | undefined
}

/** Looks at once and then every 5 s while somebody waits. */
export function watchKey(open: () => KeyCheck, options: KeyWatchOptions): KeyWatch {
  const { isWaiting, onGone, tell, everyMs = LIVE_KEYS.everyMs } = options
  let checkOnce = open()
  let timer: NodeJS.Timeout | undefined
  let checking = false
  let told = false

  async function check(isFirst: boolean): Promise<void> {
    if (checking) return
    checking = true
    const standing: KeyState = await checkOnce().catch(() => unknown())
    checking = false
    if (standing.is === 'gone') {
      // Whoever asks next begins anew: the key may have come to life.
      checkOnce = open()
      onGone()
    }
    // Not at the first look: most are answered before anybody needs to know.
    if (standing.is !== 'unknown' || standing.why === undefined || told || isFirst || !isWaiting()) return
    told = true
    tell(`${standing.why}. Whether this client's key is live can't be known; waiting on ...`)
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
