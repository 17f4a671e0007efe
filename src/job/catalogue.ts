// The catalogue: all kinds of job that an installation has. A kind is one word: the name of its queue, its jobs and its files.
// The core is generic over it: composition.ts makes the product's catalogue, and each entry of a process hands it down.
import { z } from 'zod'
import { assert } from '../errors.ts'
import { Claims } from './envelope/envelope.ts'
import type { KindEntry } from './kind-entry.ts'

export { RECORD_KINDS, type RecordKind, ROLES, type Role } from './choices.ts'
export type { KindEntry } from './kind-entry.ts'

export interface Catalogue {
  /** The names of all kinds, in the order in which people see them. */
  kinds: readonly string[]
  /** Undefined for anything but the name of a kind. */
  find(kind: unknown): KindEntry | undefined
  /** Of a kind that there is. */
  entry(kind: string): KindEntry
  /** The claims of a job of one of these kinds. */
  claims: z.ZodType<Claims>
}

export function catalogueOf(entries: Readonly<Record<string, KindEntry>>): Catalogue {
  const byName = new Map<unknown, KindEntry>(Object.entries(entries))
  const kinds = Object.keys(entries)
  return {
    kinds,
    find: kind => byName.get(kind),
    entry(kind) {
      const entry = byName.get(kind)
      assert(entry, 'the catalogue has every kind that is worked or sent')
      return entry
    },
    claims: Claims.extend({ kind: z.enum(kinds) }),
  }
}

export const FAILED_QUEUE = (kind: string): string => `failed-${kind}`

/** The results queue of a client: `results-<client id>` or `results-<client id>-<reply_to>`. */
export function resultsQueue(clientId: string, replyTo?: string | null): string {
  return replyTo ? `results-${clientId}-${replyTo}` : `results-${clientId}`
}
