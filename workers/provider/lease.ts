// A lease on rows while a provider is asked about them. It is renewed as long as its process lives, so that the lease of a
// dead process ends soon.
import { randomUUID } from 'node:crypto'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import type { Deps } from '../deps.ts'

/** How long a lease holds unless it is renewed. */
export const LEASE_MS = 10_000
const RENEW_MS = 2_500

export interface Lease {
  id: string
  /** ms since the epoch, as of now. */
  until(): number
  /** Ends the renewal; rows give the lease back one by one. */
  end(): void
}

export function openLease({ store, clock, log }: Pick<Deps, 'store' | 'clock' | 'log'>): Lease {
  const id = randomUUID()
  const timer = setInterval(() => {
    schemeTokens
      .renew(store, id, clock() + LEASE_MS)
      .catch(error => log.warn({ err: error }, 'a lease on scheme tokens could not be renewed'))
  }, RENEW_MS)
  timer.unref()
  return { id, until: () => clock() + LEASE_MS, end: () => clearInterval(timer) }
}

/** As `Promise.all`, but it waits for all of them even if one fails: the others still need their lease. */
export async function allSettledThenThrow<T>(works: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(works)
  return Promise.all(works)
}
