// The secret part of the address for results, which only this service and the directory server know: the ids of an
// authentication are shown to its requester, who would gain by ending it.
import type { Ports } from './ports.ts'

const BYTES = 16

type Keyed = Pick<Ports, 'requestDigest'>

/** Of one transaction, the same each time: 22 characters for a path. */
export function resultKeyOf({ requestDigest }: Keyed, transactionId: string): string {
  return requestDigest(`three-ds results\n${transactionId}`).subarray(0, BYTES).toString('base64url')
}

/** Compares digests, whose beginning nobody can choose, so that the duration reveals nothing. */
export function isResultKey(ports: Keyed, transactionId: string, given: string): boolean {
  const [expected, said] = [resultKeyOf(ports, transactionId), given].map(text => ports.requestDigest(text))
  return expected !== undefined && said !== undefined && expected.equals(said)
}
