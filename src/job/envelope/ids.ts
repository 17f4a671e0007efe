// Ids that producers and workers each compute from the same input: of receipts, BullMQ jobs, results, events and
// others.
import { createHash } from 'node:crypto'

const RECEIPT_NAMESPACE = Buffer.from('9b1c6f0e5a4d5f7e8c3b2a1d0e9f8c7b', 'hex')
const SCHEME_NAMESPACE = Buffer.from('c4d81f0a6b3e5d2791a07e5c3f2b8d46', 'hex')
const THREE_DS_NAMESPACE = Buffer.from('71e0b5d84c2a5f93ae6d1b7c0f482d95', 'hex')
const EVENT_NAMESPACE = Buffer.from('0d9a4c7e52f15b83a6e4f02b9c718d3e', 'hex')
const RESULT_NAMESPACE = Buffer.from('3f7a2d9c1e4b5a6f8d0c7b9e2a1f4c6d', 'hex')

/** UUID version 5 (RFC 9562): SHA-1 over namespace and name. */
function uuidV5(namespace: Buffer, name: string): string {
  const bytes = createHash('sha1').update(namespace).update(name).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** UUIDv5(namespace, client id LF jti). */
export function receiptId(clientId: string, jti: string): string {
  return uuidV5(RECEIPT_NAMESPACE, `${clientId}\n${jti}`)
}

/** `j_` and base64url(SHA-256(client id, LF, jti)). */
export function jobId(clientId: string, jti: string): string {
  return `j_${createHash('sha256').update(`${clientId}\n${jti}`).digest('base64url')}`
}

/**
 * The id of an answer that isn't a revision of its receipt, such as a refused envelope; made from the envelope's
 * digest.
 */
export function refusalResultId(receipt: string, envelopeDigest: Buffer): string {
  return uuidV5(RESULT_NAMESPACE, `${receipt}\n${envelopeDigest.toString('base64url')}`)
}

/** The same receipt and revision always give the same result id, on each delivery. */
export function resultId(receipt: string, revision: number): string {
  return uuidV5(RESULT_NAMESPACE, `${receipt}\n${revision}`)
}

/** The id of one delivery of a result in its queue. A second row of the outbox for the same result gives another id. */
export function deliveryId(result: string, outboxId: number): string {
  return `r_${result}_${outboxId}`
}

/** The id of one delivery of several results: the same rows of the outbox, in the same order, give the same id. */
export function setDeliveryId(outboxIds: readonly number[]): string {
  return `s_${createHash('sha256').update(outboxIds.join()).digest('base64url')}`
}

export function isSetDeliveryId(id: string): boolean {
  return id.startsWith('s_')
}

/** The id of one job's call to a provider for one token. `line`: the record's line in a chunk, 0 for a single job. */
export function schemeIntentId(receipt: string, line: number): string {
  return uuidV5(SCHEME_NAMESPACE, `intent\n${receipt}\n${line}`)
}

/**
 * The id of one job's call to a network for the card that a token gets by the job. `card` tells cards of the same token
 * apart.
 */
export function relinkIntentId(receipt: string, token: string, card: string): string {
  return uuidV5(SCHEME_NAMESPACE, `relink\n${receipt}\n${token}\n${card}`)
}

/** The id of a provisioning at a provider; `ordinal` distinguishes provisionings with the same token and receipt. */
export function provisionId(receipt: string, token: string, ordinal: number): string {
  return uuidV5(SCHEME_NAMESPACE, `provision\n${receipt}\n${token}\n${ordinal}`)
}

/** The id of the range within which a card has one token of a contract, as a scope is the range for one vault token. */
export function contractScopeId(tokenScope: string, contract: string): string {
  return uuidV5(SCHEME_NAMESPACE, `contract\n${tokenScope}\n${contract}`)
}

/** The id of the event that tells one change of a scheme token. */
export function schemeEventId(provision: string, version: number): string {
  return uuidV5(SCHEME_NAMESPACE, `event\n${provision}\n${version}`)
}

/** The id of the event that tells the end of an authentication. Each authentication ends once. */
export function threeDsEventId(authentication: string): string {
  return uuidV5(THREE_DS_NAMESPACE, `event\n${authentication}`)
}

/** The id of the release of one reference: the subject of its event. `ownerHash` is in hex. */
export function releaseId(ownerHash: string, receipt: string, referenceNo: number): string {
  return uuidV5(EVENT_NAMESPACE, `release\n${ownerHash}\n${receipt}\n${referenceNo}`)
}

/** The id of an event for one subscription. Every attempt to deliver it has the same id. */
export function subscribedEventId(
  endpointId: string,
  { type, subject, revision }: { type: string; subject: string; revision: number },
): string {
  return uuidV5(EVENT_NAMESPACE, `${endpointId}\n${type}\n${subject}\n${revision}`)
}
