// What `tokenmill-client` exports.
import './node-version.ts'

export { BatchError } from '../../producers/batch/batch-error.ts'
export type { BatchCheckpoint, BatchOptions, BatchRecord, Ended } from '../../producers/batch/interface.ts'
export {
  ClosedError,
  ConnectError,
  ContractError,
  KeyNotLiveError,
  RefusedError,
  UnansweredError,
} from '../../producers/client/errors.ts'
export type {
  Acknowledged,
  Answered,
  BulkOptions,
  CardToEncrypt,
  Delivery,
  EncryptedCard,
  GivenCredentials,
  Handle,
} from '../../producers/client/interface.ts'
export { HttpError, NoAnswerError, WaitError } from '../../producers/http-client/http-error.ts'
export type * from '../../producers/http-client/interface.ts'
export { ConfigError } from '../../src/config.ts'
export { Fault } from '../../src/errors.ts'
export type { Result, ResultEvent } from '../../src/job/answer/result.ts'
export { type BulkItem, type Client, type ConnectOptions, connect, type RequestKind, type Requests } from './connect.ts'
export { type ConnectHttpOptions, connectHttp } from './connect-http.ts'
export type { ClientLog } from './log.ts'
