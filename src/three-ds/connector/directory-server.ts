// The connector to a directory server: sends an AReq as JSON over HTTPS and reads the answer. It repeats a request
// once, and only if nothing was sent; the caller decides on any other repeat, which has the same transaction id.
import { Buffer } from 'node:buffer'
import { LATER_MS_MAX } from '../../clock.ts'
import { type Outbound, type OutboundAnswer, OutboundError } from '../../outbound.ts'
import type { AReq } from '../areq/areq.ts'
import { ARes, Erro } from '../messages.ts'
import type { Answer, DirectoryServer } from '../ports.ts'

interface DirectoryOptions {
  outbound: Pick<Outbound, 'request'>
  /** The time limit of each attempt. */
  timeoutMs: number
}

const TRIES = 2
const BYTES_MAX = 64 * 1024

/** The longest time that a call may take, with its repeats, in ms: the value of `Ports.askMsMax`. */
export function askMsMax(timeoutMs: number): number {
  return TRIES * (timeoutMs + LATER_MS_MAX) + 1_000
}

/** The directory server at `url`. */
export function openDirectoryServer(url: string, options: DirectoryOptions): DirectoryServer {
  return { authenticate: areq => authenticate(url, areq, options) }
}

async function authenticate(url: string, areq: AReq, options: DirectoryOptions): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    try {
      return read(await post(url, areq, options), areq)
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error
      if (error.sent) return answerOf(error)
      // A forbidden address stays forbidden, so there is no second attempt.
      if (tries === TRIES || error.kind === 'forbidden') return { kind: 'unreachable' }
    }
  }
}

function post(url: string, areq: AReq, { outbound, timeoutMs }: DirectoryOptions): Promise<OutboundAnswer> {
  return outbound.request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8', accept: 'application/json' },
    body: Buffer.from(JSON.stringify(areq.reveal())),
    timeoutMs,
    bytesMax: BYTES_MAX,
  })
}

/**
 * The meaning of a failure after the request was sent. An answer that is too large, or isn't HTTP, still counts as an
 * answer.
 */
function answerOf({ kind }: OutboundError): Answer {
  return kind === 'too_large' || kind === 'protocol' ? { kind: 'malformed' } : { kind: 'unknown' }
}

function read({ status, body }: OutboundAnswer, areq: AReq): Answer {
  const message = json(body)
  const erro = Erro.safeParse(message)
  if (erro.success) return { kind: 'refused', erro: erro.data }
  // A gateway in between may have answered although the directory server got the request.
  if (status >= 500) return { kind: 'unknown' }
  const ares = ARes.safeParse(message)
  const isOurs = ares.success && ares.data.threeDSServerTransID === areq.reveal().threeDSServerTransID
  return status === 200 && isOurs ? { kind: 'answered', ares: ares.data } : { kind: 'malformed' }
}

function json(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}
