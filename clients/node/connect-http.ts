// `connectHttp` for programs outside of this repository: the client over HTTP (producers/client/http) with this host's clock.
import { openHttpClient } from '../../producers/http-client/http-client.ts'
import type { HttpClient, HttpOptions } from '../../producers/http-client/interface.ts'
import { systemClock } from '../../src/clock.ts'
import { SILENT } from '../../src/logger.ts'
import { type ClientLog, loggerOf } from './log.ts'
import { nameThePeer } from './peer.ts'

export interface ConnectHttpOptions extends HttpOptions {
  /** Default: nothing is logged. */
  log?: ClientLog
}

/** Opens a client over HTTP. Sends nothing yet. Rejects with `ConfigError` for a client's file that can't be used. */
export function connectHttp({ log, ...options }: ConnectHttpOptions): Promise<HttpClient> {
  return openHttpClient(options, { clock: systemClock, log: log ? loggerOf(log) : SILENT }).catch(nameThePeer)
}
