// `connect` for programs outside of this repository: the library (producers/client.ts) with typed requests, and with
// nothing in its surface of the packages that it uses.
import type { SendBatch } from '../../producers/batch/interface.ts'
import { sendBatch } from '../../producers/batch/send-batch.ts'
import { type Credentials, readCredentials, takeCredentials } from '../../producers/client/client-file.ts'
import { ConnectError } from '../../producers/client/errors.ts'
import type {
  Answered,
  BulkOptions,
  ClientOptions,
  GivenCredentials,
  Handle,
  Client as Library,
  BulkItem as LibraryItem,
  SubmitOptions,
} from '../../producers/client/interface.ts'
import { openClient } from '../../producers/client.ts'
import type { ReferenceRequest } from '../../producers/reference.ts'
import type { ReportRequest } from '../../producers/report.ts'
import type { SchemeTokenRequest } from '../../producers/scheme-token.ts'
import type { CreateRequest } from '../../producers/token-create.ts'
import type { LifecycleRequest } from '../../producers/token-lifecycle.ts'
import type { UpdateRequest } from '../../producers/token-update.ts'
import { systemClock } from '../../src/clock.ts'
import { ConfigError } from '../../src/config.ts'
import { Fault } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { type ClientLog, loggerOf } from './log.ts'
import { nameThePeer } from './peer.ts'

/** What is asked for, by kind. */
export interface Requests {
  'token-create': CreateRequest
  'token-update': UpdateRequest
  'token-lifecycle': LifecycleRequest
  'scheme-token': SchemeTokenRequest
  reference: ReferenceRequest
  report: ReportRequest
}

export type RequestKind = keyof Requests

/** A request of one kind, and what goes with it. */
export type BulkItem = {
  [Kind in RequestKind]: Omit<LibraryItem, 'kind' | 'request' | 'block'> & { kind: Kind; request: Requests[Kind] }
}[RequestKind]

type Given = Omit<SubmitOptions, 'block' | 'resultColumns'>

export interface Client extends Omit<Library, 'submit' | 'call' | 'bulk' | 'heldUpBy'> {
  /**
   * Sends a job. Resolves when the queue has the job. Rejects with `RefusedError` (not sent) or `Fault('queue_away')`
   * (perhaps sent: repeat it with the same jti).
   */
  submit<Kind extends RequestKind>(kind: Kind, request: Requests[Kind], options?: Given): Promise<Handle>
  /** `submit`, then `result`. */
  call<Kind extends RequestKind>(
    kind: Kind,
    request: Requests[Kind],
    options?: Given & { timeoutMs?: number },
  ): Promise<Result>
  /**
   * Sends all items. Yields each item with its result, in the order in which results arrive. An item that is refused
   * before it is sent has a result with `attempt` 0.
   */
  bulk<T extends BulkItem>(items: AsyncIterable<T> | Iterable<T>, options?: BulkOptions): AsyncIterable<Answered<T>>
  /**
   * Sends a list and yields the result of each record in the order of the list: one job for a thousand records. The list isn't
   * held: a few chunks of it are in flight. Rejects with `BatchError` if a chunk is refused as a whole.
   */
  batch: SendBatch
}

export interface ConnectOptions extends ClientOptions {
  redisUrl: string
  /** Of a client that has its credentials elsewhere than in files; without them, set `clientFile`. */
  credentials?: GivenCredentials
  /** Default: nothing is logged. */
  log?: ClientLog
}

/**
 * Opens a client over the queues. Rejects with `ConnectError` if no server answers, with `ConfigError` for a client's file or a server that
 * can't be used.
 */
export async function connect({ credentials: given, log, ...options }: ConnectOptions): Promise<Client> {
  if (!options.redisUrl) throw new ConnectError(`connect: \`redisUrl\` is not set. ${OVER_HTTP}`)
  const [wrong] = options.redisUrl.split(',').filter(url => !URL.canParse(url))
  if (wrong !== undefined) throw new ConfigError('connect: `redisUrl` is not a URL: redis://user:password@host:6379')
  const credentials = await credentialsOf(given, options.clientFile).catch(nameThePeer)
  const opened = await openClient({ ...options, credentials, ...(log && { log: loggerOf(log) }) }).catch(error => {
    if (!(error instanceof Fault) || error.code !== 'queue_away') throw error
    throw new ConnectError(`no Redis that can be used answers at ${hostsOf(options.redisUrl)}. ${OVER_HTTP}`, error)
  })
  const { client, captureKeys } = opened
  const deps = {
    client,
    tokenScope: credentials.tokenScope,
    captureKey: () => captureKeys.current().jwe,
    clock: systemClock,
  }
  return { ...client, batch: (batch, records) => sendBatch(batch, records, deps) }
}

async function credentialsOf(
  given: GivenCredentials | undefined,
  clientFile: string | undefined,
): Promise<Credentials> {
  if (given) return takeCredentials(given)
  if (!clientFile) throw new ConfigError('connect: give `clientFile` or `credentials`')
  return readCredentials(clientFile)
}

const OVER_HTTP =
  'An installation that was started without REDIS_URL keeps its queues in PostgreSQL, where other programs can’t reach them: use `connectHttp` with its `baseUrl`.'

/** The servers without user and password. */
function hostsOf(redisUrl: string): string {
  return redisUrl
    .split(',')
    .map(url => (URL.canParse(url) ? new URL(url).host : 'a text that is no URL'))
    .join(', ')
}
