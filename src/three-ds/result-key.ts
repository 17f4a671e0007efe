// The secret part of the URL for results, which only this service and the directory server know. The ids in the URL
// aren't enough: the requester of the authentication sees them, and could profit from sending a result.
import type { Ports } from './ports.ts'
import type { Authentication } from './record.ts'

const BYTES = 16

type Keyed = Pick<Ports, 'requestDigestBy'>
type Named = Pick<Authentication, 'transactionId' | 'digestVersion'>

/** The key of one transaction: 22 characters for a path, the same each time. */
export async function resultKeyOf(ports: Keyed, { transactionId, digestVersion }: Named): Promise<string> {
  const digest = await ports.requestDigestBy(`three-ds results\n${transactionId}`, digestVersion)
  return digest.subarray(0, BYTES).toString('base64url')
}

/** Whether `given` is the transaction's key. It compares digests, so the duration reveals nothing about the key. */
export async function isResultKey(ports: Keyed, record: Named, given: string): Promise<boolean> {
  const [expected, said] = await Promise.all(
    [await resultKeyOf(ports, record), given].map(text => ports.requestDigestBy(text, record.digestVersion)),
  )
  return expected !== undefined && said !== undefined && expected.equals(said)
}
