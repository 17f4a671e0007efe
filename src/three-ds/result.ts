// How a challenge ends: the results request (RReq) of the directory server ends it, or its time does. The browser's
// return, with a CRes or an Erro message, ends nothing: it only shows that the browser is back, and gets the signed
// outcome if there is one.

import { applyResult, type Result } from './apply-message.ts'
import { readReturn } from './browser-return.ts'
import { signOutcome } from './jwt.ts'
import { erro, MESSAGE_VERSION, RReq, type RRes } from './messages.ts'
import type { Ports } from './ports.ts'
import { type Problem, problem } from './problem.ts'
import type { Authentication } from './record.ts'
import { isResultKey } from './result-key.ts'
import { isFinal } from './transition.ts'
import { upToDate, write } from './write.ts'

interface Received {
  /** The message for the directory server, RRes or Erro; the HTTP status is 200 for both. */
  message: RRes | ReturnType<typeof erro>
  /** Undefined if the message wasn't for this service. */
  record?: Authentication
  /** This message ended the authentication, so the client is to be notified now. */
  ended: boolean
}

/**
 * Handles an RReq. `body`: parsed JSON from anybody; `key`: from the URL's path. The ids in the body say which
 * authentication is meant. The key proves that the sender got this URL from us, so it is the directory server.
 */
export async function receiveResult(ports: Ports, body: unknown, key: string): Promise<Received> {
  const parsed = RReq.safeParse(body)
  if (!parsed.success) {
    const type = (body as { messageType?: unknown } | null)?.messageType
    return { message: erro(type === 'RReq' ? '203' : '101', type === 'RReq' ? 'RReq' : 'unknown'), ended: false }
  }
  const rreq = parsed.data
  const id = rreq.threeDSServerTransID
  const found = await ports.authentications.findByTransaction(id)
  const isOurs =
    found?.findings.acs_transaction_id === rreq.acsTransID && found.findings.ds_transaction_id === rreq.dsTransID
  if (!found || !isOurs || !(await isResultKey(ports, found, key)))
    return { message: erro('301', 'RReq', id), ended: false }
  const current = await upToDate(ports, found)
  const { record, moved, ignored } = await write(ports, current.record, stored =>
    applyResult(stored, resultOf(rreq), ports.clock()),
  )
  const ended = moved || current.ended
  // An authentication that ended otherwise isn't changed. The answer is EMV's code for a message out of order.
  if (ignored === 'late' || ignored === 'early')
    return { message: erro(record.findings.error_no === '513' ? '402' : '305', 'RReq', id), record, ended }
  return { message: resultsResponse(rreq), record, ended }
}

function resultOf(rreq: RReq): Result {
  return {
    outcome: rreq.transStatus,
    eci: rreq.eci,
    cavv: rreq.authenticationValue,
    statusReason: rreq.transStatusReason,
    challengeCancel: rreq.challengeCancel,
    authenticationType: rreq.authenticationType,
  }
}

function resultsResponse(rreq: RReq): RRes {
  const { threeDSServerTransID, dsTransID, acsTransID } = rreq
  return {
    messageType: 'RRes',
    messageVersion: MESSAGE_VERSION,
    threeDSServerTransID,
    dsTransID,
    acsTransID,
    resultsStatus: '01',
  }
}

interface Returned {
  record: Authentication
  /** The JWT for `jwt/validate`; undefined if the lookup named no JWT of this service. */
  jwt: string | undefined
  /** The time of the challenge was over, and ended the authentication now. */
  ended: boolean
}

/**
 * Handles the browser at the notification URL, with the text of the form field `cres`. Problem 409 while the
 * authentication hasn't ended: the directory server should have sent the result before the ACS lets the browser go.
 */
export async function receiveReturn(ports: Ports, cres: string): Promise<Returned | Problem> {
  const message = readReturn(cres)
  if (!message) return problem(101, { field: 'body.cres', reason: 'field_format' })
  const record = await ports.authentications.findByTransaction(message.threeDSServerTransID)
  const acsTransId = record?.findings.acs_transaction_id
  if (!record || acsTransId === undefined || (message.acsTransID ?? acsTransId) !== acsTransId) return problem(204)
  const current = isFinal(record.state) ? { record, ended: false } : await upToDate(ports, record)
  if (!isFinal(current.record.state)) return problem(409)
  return { ...current, jwt: await signOutcome(ports, current.record) }
}

export interface Expired {
  ended: Authentication[]
  /** Those that could not be ended, and why: their data can't be opened, or the store is away. */
  failed: { authenticationId: string; error: unknown }[]
}

/** Ends pending authentications whose time is over. One that can't be read holds back no other. */
export async function expireOverdue(ports: Pick<Ports, 'authentications' | 'clock'>, limit: number): Promise<Expired> {
  const expired: Expired = { ended: [], failed: [] }
  for (const authenticationId of await ports.authentications.findOverdue(ports.clock(), limit)) {
    try {
      const found = await ports.authentications.find(authenticationId)
      const current = found && (await upToDate(ports, found))
      if (current?.ended) expired.ended.push(current.record)
    } catch (error) {
      expired.failed.push({ authenticationId, error })
    }
  }
  return expired
}
