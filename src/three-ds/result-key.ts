// The secret part of the URL for results, which only this service and the directory server know. The ids in the URL
// aren't enough: the requester of the authentication sees them, and could profit from sending a result.
import type { Ports } from './ports.ts'

const BYTES = 16

type Keyed = Pick<Ports, 'requestDigest'>

/** The key of one transaction: 22 characters for a path, the same each time. */
export function resultKeyOf({ requestDigest }: Keyed, transactionId: string): string {
  return requestDigest(`three-ds results\n${transactionId}`).subarray(0, BYTES).toString('base64url')
}

/** Whether `given` is the transaction's key. It compares digests, so the duration reveals nothing about the key. */
export function isResultKey(ports: Keyed, transactionId: string, given: string): boolean {
  const [expected, said] = [resultKeyOf(ports, transactionId), given].map(text => ports.requestDigest(text))
  return expected !== undefined && said !== undefined && expected.equals(said)
}
