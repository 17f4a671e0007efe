// Tests that every provider of key-encryption keys must pass.
import { expect, it } from 'vitest'
import { Fault } from '../../../src/errors.ts'
import { makeProbe, prove } from '../../../src/vault/kek/probe.ts'
import type { KeyProvider } from '../../../src/vault/kek/provider.ts'

const SECRET = Buffer.from('a data key of thirty-two bytes..')

interface Providers {
  kek: KeyProvider
  /** The same key, opened again. */
  again: KeyProvider
  /** Another key of the same kind. */
  other: KeyProvider
}

/**
 * `isFixed`: it wraps the same bytes for the same purpose alike, as key wrap does. `bytesMax`: KMS takes 4,096 bytes at most.
 */
export function itKeepsTheLawOfProviders(
  open: () => Promise<Providers>,
  { isFixed = false, bytesMax = 5_000 } = {},
): void {
  it('unwraps what it wrapped, of any length, and wraps the same twice differently but for key wrap', async () => {
    const { kek, again } = await open()
    for (const plain of [SECRET, Buffer.from('k'), Buffer.alloc(0), Buffer.alloc(bytesMax, 7)])
      expect((await again.unwrap(await kek.wrap(plain, 'p'), 'p')).equals(plain)).toBe(true)
    const [first, second] = [await kek.wrap(SECRET, 'p'), await kek.wrap(SECRET, 'p')]
    expect(first.equals(second)).toBe(isFixed)
  })

  it('refuses to unwrap for another purpose, with another key, or bytes that were changed', async () => {
    const { kek, other } = await open()
    const wrapped = await kek.wrap(SECRET, 'data-key/seal/1')
    const changed = Buffer.from(wrapped)
    changed[20] = (changed[20] ?? 0) ^ 1
    const attempts = [
      kek.unwrap(wrapped, 'data-key/seal/2'),
      kek.unwrap(changed, 'data-key/seal/1'),
      kek.unwrap(wrapped.subarray(0, 27), 'data-key/seal/1'),
      other.unwrap(wrapped, 'data-key/seal/1'),
    ]
    expect(await Promise.all(attempts.map(codeOf))).toEqual(Array(4).fill('key_unavailable'))
    expect((await kek.unwrap(wrapped, 'data-key/seal/1')).equals(SECRET)).toBe(true)
  })

  it('has an id that is the key’s own, and proves itself by its probe alone', async () => {
    const { kek, again, other } = await open()
    expect(kek.id).toMatch(/^kek-[0-9a-f]{16}$/)
    expect(again.id).toBe(kek.id)
    expect(other.id).not.toBe(kek.id)
    const probe = await makeProbe(kek)
    await prove(again, probe)
    expect(await codeOf(prove(other, probe))).toBe('key_unavailable')
  })
}

/** The code of the fault by which the attempt ended; another error as a text. */
export async function codeOf(attempt: Promise<unknown>): Promise<string> {
  const error = await attempt.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  return error instanceof Fault ? error.code : String(error)
}
