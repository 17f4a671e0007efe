// The part of the address for results that only we and the directory server know: ids of an authentication are shown to
// whoever asked for it, and he would gain by ending it himself.
import type { Ports } from './ports.ts'

const BYTES = 16

type Keyed = Pick<Ports, 'requestDigest'>

/** Of one transaction, the same each time: 22 characters for a path. */
export function resultKeyOf({ requestDigest }: Keyed, transactionId: string): string {
  return requestDigest(`three-ds results\n${transactionId}`).subarray(0, BYTES).toString('base64url')
}

/** Digests are compared, of which nobody can choose the beginning: how long it takes tells nothing. */
export function isResultKey(ports: Keyed, transactionId: string, given: string): boolean {
  const [expected, said] = [resultKeyOf(ports, transactionId), given].map(text => ports.requestDigest(text))
  return expected !== undefined && said !== undefined && expected.equals(said)
}
