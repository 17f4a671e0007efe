// The library that an upstream system imports: it submits jobs, finds their results on its results queue, and sends
// unanswered jobs again. It holds no key of the vault. It needs a queue server and no HTTP.
import { type Clock, systemClock } from '../src/clock.ts'
import { type Logger, SILENT } from '../src/logger.ts'
import type { Queues } from '../src/queue/engine.ts'
import { openRedis } from '../src/queue/open-redis.ts'
import { bulk } from './client/bulk.ts'
import { type CurrentKeys, openCaptureKeys } from './client/capture-keys.ts'
import { encryptCard } from './client/card.ts'
import { type Credentials, readCredentials } from './client/client-file.ts'
import { ASKS } from './client/composition.ts'
import { ClosedError, ContractError, KeyNotLiveError } from './client/errors.ts'
import type { BulkItem, Client, ClientOptions, Delivery } from './client/interface.ts'
import { openSemaphore } from './client/semaphore.ts'
import { openSending } from './client/sending.ts'
import { openTrustedKeys } from './client/trusted-keys.ts'
import { type KeyCheck, openListCheck, watchKey } from './live-key.ts'
import { type Inbox, NOTHING_ACKNOWLEDGED, once, openInbox } from './results.ts'

export type { Credentials } from './client/client-file.ts'
export { type ClientKind, isClientKind } from './client/composition.ts'
export { ClosedError, ContractError, KeyNotLiveError, RefusedError, UnansweredError } from './client/errors.ts'
export type * from './client/interface.ts'

export interface ConnectOptions extends ClientOptions {
  /** Queues that are already open; the client doesn't close them. Without them, set `redisUrl`. */
  queues?: Queues
  /** Without them, set `clientFile`. */
  credentials?: Credentials
  log?: Logger
  clock?: Clock
  /** Says whether the client's key is live. For a caller that knows more than the list that workers publish. */
  checkKey?: KeyCheck | undefined
  /** How often the key is checked while a job is unanswered, in ms (5,000). */
  keyCheckMs?: number | undefined
}

const CLOSE_MS = 5_000
const ANSWER_MS = 120_000

export async function connect(options: ConnectOptions): Promise<Client> {
  return (await openClient(options)).client
}

/** A client, and the capture keys to which it encrypts now. */
export interface OpenedClient {
  client: Client
  captureKeys: CurrentKeys
}

export async function openClient(options: ConnectOptions): Promise<OpenedClient> {
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
    onForeign(contract) {
      const error = new ContractError(contract)
      log.warn(error.message)
      sending.rejectAll(error)
    },
    tell,
    everyMs: keyCheckMs,
  })
  const closed = new AbortController()
  let subscriber: ((delivery: Delivery) => Promise<void>) | undefined
  let inbox: Inbox | undefined
  const captureKeys = openCaptureKeys(credentials, trusted, clock)

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

  const client: Client = {
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
      const post = ({ kind, request, ...rest }: BulkItem) => sending.ask(kind, request, rest)
      return bulk({ clientId, names: credentials.names ?? 'checked', closed: closed.signal, post }, items, given)
    },
    encryptCard: card => encryptCard(card, { captureKeys: captureKeys.current() }, clock()),
    takeCaptureKeys: captureKeys.take,
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
  return { client, captureKeys }
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
