// A lease on rows while a provider is called about them. It is renewed while its process lives, so that a dead
// process's lease ends soon.
import { randomUUID } from 'node:crypto'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import type { Deps } from '../deps.ts'

/** How long a lease holds unless it is renewed. */
export const LEASE_MS = 10_000
const RENEW_MS = 2_500

export interface Lease {
  id: string
  /** When the lease ends, ms since the epoch. */
  until(): number
  /** Stops the renewal; the lease on each row is given back separately. */
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

/** Like `Promise.all`, but if one fails it still waits for the others, because they need their lease. */
export async function allSettledThenThrow<T>(works: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(works)
  return Promise.all(works)
}
