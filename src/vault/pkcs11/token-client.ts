// A token as our process sees it: one request at a time, in one child that is ended when it has nothing to do. On any
// failure another child logs in and finds the key again, once: the error codes of modules are misleading, and a handle
// can stay invalid after a token came back. A PIN that was refused isn't tried again until its file has changed.
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { forkTokenChild, type TokenChild } from './token-child.ts'
import { TokenError } from './token-error.ts'
import type { TokenAct, TokenReply } from './token-message.ts'
import type { TokenKey } from './uri.ts'

const PROBE = 'tokenmill probe'
const PROBE_BYTES = 32

export interface TokenLimits {
  /** The time limit for a session, from the start of its process. */
  openMs: number
  /** The time limit of each request in a session. */
  answerMs: number
  /** A child that was asked nothing for this time is ended. */
  idleMs: number
  /** After a failure to reach the token, requests fail at once for this time. */
  awayMs: number
}

export interface TokenClient {
  /** The id of the key. It opens a session if there is none. Throws `TokenError`. */
  id(): Promise<string>
  /** Throws `TokenError`: `bytes` only if a new session showed the right key, which works and can't open them. */
  ask(act: TokenAct): Promise<Buffer>
}

export function openTokenClient(key: TokenKey, { openMs, answerMs, idleMs, awayMs }: TokenLimits): TokenClient {
  let child: TokenChild | undefined
  let known: string | undefined
  let failure: { error: TokenError; isOver: () => boolean } | undefined
  let idle: NodeJS.Timeout | undefined
  let last: Promise<unknown> = Promise.resolve()

  function end(): void {
    child?.end()
    child = undefined
  }

  async function begin(): Promise<TokenChild> {
    end()
    if (failure && !failure.isOver()) throw failure.error
    const pin = pinState(key.pinFile)
    const begun = forkTokenChild()
    try {
      known = await openIn(begun, { key, openMs }, known)
    } catch (error) {
      begun.end()
      throw remembered(error, pin)
    }
    child = begun
    return begun
  }

  function remembered(error: unknown, pin: string): unknown {
    if (!(error instanceof TokenError)) return error
    const until = performance.now() + awayMs
    const isOver = () => (error.kind === 'pin' ? pinState(key.pinFile) !== pin : performance.now() >= until)
    failure = { error, isOver }
    return error
  }

  async function run(act: TokenAct): Promise<Buffer> {
    const first = child && (await child.ask(act, answerMs).catch(() => undefined))
    const isFinal = first && ('bytes' in first || ('kind' in first && first.kind === 'bytes'))
    if (isFinal) return bytesOf(first)
    const begun = await begin()
    const second = await begun.ask(act, answerMs).catch(error => {
      end()
      throw remembered(error, pinState(key.pinFile))
    })
    if (!('kind' in second) || second.kind === 'bytes' || act.act === 'wrap') return bytesOf(second)
    // The error codes of modules are misleading. So the key is tried: either it can't open these bytes, or nothing at all.
    if (await worksNow(begun)) throw new TokenError('bytes', second.text)
    end()
    throw remembered(new TokenError('away', second.text), pinState(key.pinFile))
  }

  /** Whether the session's key opens what it wraps. */
  async function worksNow(begun: TokenChild): Promise<boolean> {
    const plain = randomBytes(PROBE_BYTES)
    const reply = (act: TokenAct) => begun.ask(act, answerMs).catch(() => undefined)
    const wrapped = await reply({ act: 'wrap', bytes: plain, purpose: PROBE })
    if (!wrapped || !('bytes' in wrapped)) return false
    const opened = await reply({ act: 'unwrap', bytes: Buffer.from(wrapped.bytes), purpose: PROBE })
    return opened !== undefined && 'bytes' in opened && plain.equals(Buffer.from(opened.bytes))
  }

  function inTurn<T>(act: () => Promise<T>): Promise<T> {
    const mine = last.then(() => {
      clearTimeout(idle)
      return act()
    })
    last = mine
      .catch(() => {})
      .then(() => {
        idle = setTimeout(end, idleMs)
        idle.unref()
      })
    return mine
  }

  return {
    id: () =>
      inTurn(async () => {
        if (!child || known === undefined) await begin()
        if (known === undefined) throw new TokenError('away', 'the token showed no key')
        return known
      }),
    ask: act => inTurn(() => run(act)),
  }
}

async function openIn(
  child: TokenChild,
  { key, openMs }: { key: TokenKey; openMs: number },
  known: string | undefined,
): Promise<string> {
  const reply = await child.ask({ open: key }, openMs)
  if ('kind' in reply) throw new TokenError(reply.kind, reply.text)
  if (!('id' in reply)) throw new TokenError('away', 'the process of the token answered out of turn')
  if (known !== undefined && reply.id !== known)
    throw new TokenError('config', `${key.name} is another key now: ${reply.id}, it was ${known}`)
  return reply.id
}

function bytesOf(reply: TokenReply): Buffer {
  if ('bytes' in reply) return Buffer.from(reply.bytes)
  if ('kind' in reply) throw new TokenError(reply.kind, reply.text)
  throw new TokenError('away', 'the process of the token answered out of turn')
}

/** A text that changes when the file of the PIN does. */
function pinState(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat ? `${stat.ino} ${stat.mtimeNs} ${stat.size}` : 'absent'
}
