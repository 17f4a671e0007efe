// Splits the key of a KEK file into shares by Shamir's scheme over GF(2^8) (ISO/IEC 19592-2), each as long as the key:
// fewer than the threshold say nothing of it. Joined shares are checked against the id of the key that they name.
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { combine, split } from 'shamir-secret-sharing'
import { assert } from '../../errors.ts'
import { Secret } from '../../secret.ts'
import { KEY_BYTES, kekIdOf } from '../kek/file.ts'
import { type KeyShare, SHARE_BYTES } from './share-text.ts'

/** A share, and what its holder calls it: a file's name, for example. */
export interface NamedShare {
  name: string
  share: KeyShare
}

/** Why shares don't restore a key. `names`: the shares that it is about. */
export interface JoinRefusal {
  refused: 'mixed' | 'twice' | 'too_few' | 'another_key'
  names: string[]
  /** How many shares restore the key. */
  threshold: number
}

/** Shares are numbered from 1. */
export async function splitKey(
  key: KeyObject,
  { threshold, of }: { threshold: number; of: number },
): Promise<KeyShare[]> {
  const raw = Uint8Array.from(key.export())
  assert(raw.length === KEY_BYTES, 'a key-encryption key has 32 bytes')
  try {
    const made = await split(raw, of, threshold)
    const about = { setId: randomBytes(8).toString('hex'), threshold, of, kekId: kekIdOf(key) }
    return made.map((bytes, at) => ({ ...about, index: at + 1, bytes: new Secret(Buffer.from(bytes.buffer)) }))
  } finally {
    raw.fill(0)
  }
}

/** The key, if the shares are of one set, are enough of them, and give the key whose id they name. */
export async function joinShares(
  given: readonly NamedShare[],
): Promise<{ key: KeyObject; kekId: string } | JoinRefusal> {
  const [first] = given
  if (!first) return { refused: 'too_few', names: [], threshold: 2 }
  const { threshold, kekId } = first.share
  const others = given.filter(({ share }) => setOf(share) !== setOf(first.share))
  if (others.length > 0) return { refused: 'mixed', names: given.map(({ name }) => name), threshold }
  const twice = given.filter(one => given.some(other => other !== one && isSamePoint(other.share, one.share)))
  if (twice.length > 0) return { refused: 'twice', names: twice.map(({ name }) => name), threshold }
  if (given.length < threshold) return { refused: 'too_few', names: given.map(({ name }) => name), threshold }
  const raw = await combine(given.map(({ share }) => Uint8Array.from(share.bytes.reveal())))
  try {
    const key = createSecretKey(raw)
    return kekIdOf(key) === kekId
      ? { key, kekId }
      : { refused: 'another_key', names: given.map(({ name }) => name), threshold }
  } finally {
    raw.fill(0)
  }
}

const setOf = ({ setId, threshold, of, kekId }: KeyShare) => `${setId} ${threshold} ${of} ${kekId}`

/** The same share twice, or two shares for the same point of the polynomial. */
function isSamePoint(one: KeyShare, other: KeyShare): boolean {
  const x = ({ bytes }: KeyShare) => bytes.reveal()[SHARE_BYTES - 1]
  return one.index === other.index || x(one) === x(other)
}
