// The library that an upstream system imports: it submits jobs, finds their results on its results queue, and sends
// unanswered jobs again. It holds no key of the vault. It needs a queue server and no HTTP.
import { type Clock, systemClock } from '../src/clock.ts'
import type { FaultCode } from '../src/errors.ts'
import type { Result } from '../src/job/answer/result.ts'
import { type Logger, SILENT } from '../src/logger.ts'
import type { Queues } from '../src/queue/engine.ts'
import { openRedis } from '../src/queue/open-redis.ts'
import { type Answered, type BulkItem as AnyItem, type BulkOptions, bulk } from './client/bulk.ts'
import { verifyCaptureKeys } from './client/capture-keys.ts'
import { type CardToEncrypt, type EncryptedCard, encryptCard } from './client/card.ts'
import { type Credentials, readCredentials } from './client/client-file.ts'
import { ASKS, type ClientKind } from './client/composition.ts'
import { ClosedError } from './client/errors.ts'
import type { Handle } from './client/jobs.ts'
import { openSemaphore } from './client/semaphore.ts'
import { openSending, type SubmitOptions } from './client/sending.ts'
import { openTrustedKeys } from './client/trusted-keys.ts'
import { type KeyCheck, KeyNotLiveError, openListCheck, watchKey } from './live-key.ts'
import { type Acknowledged, type Delivery, type Inbox, NOTHING_ACKNOWLEDGED, once, openInbox } from './results.ts'

export type { Answered, BulkOptions } from './client/bulk.ts'
export type { CardToEncrypt, EncryptedCard } from './client/card.ts'
export type { Credentials } from './client/client-file.ts'
export { type ClientKind, isClientKind } from './client/composition.ts'
export { ClosedError, RefusedError, UnansweredError } from './client/errors.ts'
export type { Handle } from './client/jobs.ts'
export type { SubmitOptions } from './client/sending.ts'
export { KeyNotLiveError } from './live-key.ts'
export type { Delivery } from './results.ts'

export interface ConnectOptions {
  /** Queues that are already open; the client doesn't close them. Without them, set `redisUrl`. */
  queues?: Queues
  /** `redis://` or `rediss://`; for a cluster several URLs, separated by commas. */
  redisUrl?: string
  /** The prefix of the queues' Redis keys, for `redisUrl`; it must be the installation's (default `{tokenmill}`). */
  prefix?: string
  /** The path of the client's credentials file. Without it, set `credentials`. */
  clientFile?: string
  credentials?: Credentials
  /**
   * `[a-z0-9]{1,32}`: the name of a separate results queue for this process. If several processes call `result`, `call`
   * or `bulk`, each needs its own.
   */
  replyTo?: string | undefined
  /**
   * Whether several results may come in one delivery, which costs sender and workers less. Set it to true only if every
   * process that reads this results queue is of a release that knows such deliveries; an older reader would drop them.
   * Default: true with `replyTo`, because only this process reads that queue; else false.
   */
  resultSets?: boolean | undefined
  log?: Logger
  /** After this many ms without an answer a job is sent again (60,000). */
  resendMs?: number | undefined
  /** How many jobs may be unanswered at once; `submit` waits until there is room (10,000). */
  unansweredMax?: number
  /** How many deliveries are taken off the queue at once, and how many results are handled at once (50). */
  deliveries?: number
  clock?: Clock
  /** Says whether the client's key is live. For a caller that knows more than the list that workers publish. */
  checkKey?: KeyCheck | undefined
  /** How often the key is checked while a job is unanswered, in ms (5,000). */
  keyCheckMs?: number | undefined
  /**
   * Called with one line for a person if it can't be found out whether the key is live. Default: a warning in the log.
   */
  tell?: (line: string) => void
}

export interface BulkItem extends AnyItem {
  kind: ClientKind
}

export interface Client {
  clientId: string
  /**
   * Sends a job. Resolves when the queue has the job. Rejects with `RefusedError` (not sent) or `Fault('queue_away')`
   * (perhaps sent: repeat it with the same jti).
   */
  submit(kind: ClientKind, request: unknown, options?: SubmitOptions): Promise<Handle>
  /**
   * Waits for a job's result; of several revisions it returns the highest one found. Rejects with `UnansweredError`
   * after `timeoutMs` (120,000). Like `call` and `bulk` it rejects with `KeyNotLiveError` if two lists of live keys in
   * a row lack this client's key; workers publish one every few seconds.
   */
  result(handle: Handle, options?: { timeoutMs?: number }): Promise<Result>
  /** `submit`, then `result`. */
  call(kind: ClientKind, request: unknown, options?: SubmitOptions & { timeoutMs?: number }): Promise<Result>
  /**
   * Calls `callback` with every result and event of this results queue, except events of a type that this release
   * doesn't know, and except the refusal of an envelope whose job this client sends again in another envelope. A delivery is acknowledged when `callback` resolves, and offered again if it rejects.
   */
  results(callback: (delivery: Delivery) => Promise<void> | void, options?: { concurrency?: number }): void
  /**
   * Sends all items. Yields each item with its result, in the order in which results arrive. An item that is refused
   * before it is sent has a result with `attempt` 0.
   */
  bulk<T extends BulkItem>(items: AsyncIterable<T> | Iterable<T>, options?: BulkOptions): AsyncIterable<Answered<T>>
  /**
   * Encrypts a card. The result holds `encrypted_card` and `public_key_alias` for a request, and is valid for 15
   * minutes. Rejects with `RefusedError` for a card with a `cvv`.
   */
  encryptCard(card: CardToEncrypt): Promise<EncryptedCard>
  /**
   * Encrypts to newer capture keys from now on. `document`: the answer of `GET /.well-known/capture-keys`, however it was
   * fetched. Rejects with `ConfigError`, and changes nothing, if a key in it isn't signed by a key of the installation
   * that this client trusts.
   */
  takeCaptureKeys(document: unknown): Promise<void>
  /**
   * Why workers don't answer the job that has waited longest: the fault of a server that holds it up; undefined for none. For
   * example `store_busy`, while the store has no room left.
   */
  heldUpBy(): Promise<FaultCode | undefined>
  /** How many deliveries were taken off the results queue, by the reason for which they were acknowledged. */
  counts(): Record<Acknowledged, number>
  /** Stops listening and sending. Unanswered jobs stay on the queue. */
  close(): Promise<void>
}

const CLOSE_MS = 5_000
const ANSWER_MS = 120_000

export async function connect(options: ConnectOptions): Promise<Client> {
  const { clock = systemClock, log = SILENT, replyTo, deliveries = 50 } = options
  const { resultSets = replyTo !== undefined } = options
  const { resendMs = 60_000, unansweredMax = 10_000 } = options
  const given = await credentialsOf(options)
  const trusted = openTrustedKeys(given, log)
  const credentials = { ...given, installationKeys: trusted.keys }
  const queues = options.queues ?? (await openOwn(options, log))
  const { clientId } = credentials.signingKey
  const sending = openSending(
    { asks: ASKS, queues, credentials, trusted, replyTo, resultSets, clock, log },
    { resendMs, unansweredMax },
  )
  const { checkKey, keyCheckMs, tell = (line: string) => log.warn(line) } = options
  const { isWaiting } = sending
  const watch = watchKey(() => checkKey ?? openListCheck(queues, { ...credentials, trusted }, clock), {
    isWaiting,
    onGone: () => {
      const error = new KeyNotLiveError(credentials.signingKey)
      // A client that only listens for results has no call that could reject, so the error is logged.
      log.warn(error.message)
      sending.rejectAll(error)
    },
    tell,
    everyMs: keyCheckMs,
  })
  const closed = new AbortController()
  let subscriber: ((delivery: Delivery) => Promise<void>) | undefined
  let inbox: Inbox | undefined
  let { captureKeys } = credentials

  async function receive(delivery: Delivery): Promise<'taken' | 'unclaimed'> {
    const claim = delivery.type === 'result' ? sending.resolve(delivery) : 'unclaimed'
    if (claim === 'again') return 'taken'
    await subscriber?.(delivery)
    return claim === 'claimed' || subscriber ? 'taken' : 'unclaimed'
  }
  function listen(): void {
    if (closed.signal.aborted) throw new ClosedError()
    const mailbox = { clientId, replyTo, ...trusted }
    const pauses = { unclaimedMs: 2 * resendMs, retryMs: resendMs / 60, tell }
    watch.start()
    inbox ??= openInbox(queues, mailbox, receive, { concurrency: deliveries, log, ...pauses })
  }

  return {
    clientId,
    async submit(kind, request, given = {}) {
      listen()
      return sending.submit(kind, request, given)
    },
    async result(handle, { timeoutMs = ANSWER_MS } = {}) {
      listen()
      return sending.result(handle, timeoutMs)
    },
    async call(kind, request, given = {}) {
      listen()
      const { timeoutMs = ANSWER_MS } = given
      const { answer } = await sending.ask(kind, request, given, timeoutMs)
      return answer
    },
    results(callback, { concurrency = 10 } = {}) {
      const limit = openSemaphore(concurrency)
      const deliver = once(callback)
      subscriber = async delivery => {
        await limit.acquire()
        await deliver(delivery).finally(limit.release)
      }
      listen()
    },
    bulk(items, given) {
      listen()
      const post = ({ kind, request, ...rest }: AnyItem) => sending.ask(kind, request, rest)
      return bulk({ clientId, names: credentials.names ?? 'checked', closed: closed.signal, post }, items, given)
    },
    encryptCard: card => encryptCard(card, { captureKeys }, clock()),
    async takeCaptureKeys(document) {
      const taken = await verifyCaptureKeys(document, credentials, clock())
      await trusted.renew(taken.newKeys)
      // A document can lack the keys of a form without any signature, so the keys known before are kept then.
      const { jwe = captureKeys.jwe, pgp = captureKeys.pgp } = taken.captureKeys
      captureKeys = { jwe, pgp }
    },
    heldUpBy: () => sending.heldUpBy(),
    counts: () => ({ ...(inbox?.counts ?? NOTHING_ACKNOWLEDGED) }),
    async close() {
      if (closed.signal.aborted) return
      closed.abort()
      watch.stop()
      await inbox?.close(CLOSE_MS)
      await sending.close()
      if (!options.queues) await queues.close()
    },
  }
}

async function credentialsOf({ credentials, clientFile }: ConnectOptions): Promise<Credentials> {
  if (credentials) return credentials
  if (!clientFile) throw new TypeError('connect: give `credentials` or `clientFile`')
  return readCredentials(clientFile)
}

function openOwn({ redisUrl, prefix = '{tokenmill}' }: ConnectOptions, log: Logger): Promise<Queues> {
  if (!redisUrl) throw new TypeError('connect: give `queues` or `redisUrl`')
  return openRedis(redisUrl.split(','), { prefix, lockMs: 60_000, log })
}
