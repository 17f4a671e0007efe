// The life of a token at the simulated network. Several parties may suspend it, and each lifts only its own suspension.
// A deactivated token stays deactivated.
import type { SimulatedToken } from './journal.ts'

export type Deed = 'suspend' | 'resume' | 'delete' | 'activate'

/** The token after `deed` by `by`; undefined if the token's state doesn't permit the deed. */
export function change(token: SimulatedToken, deed: Deed, by: string, now: number): SimulatedToken | undefined {
  const { state, suspendedBy } = token
  if (state === 'DEACTIVATED') return undefined
  if (deed === 'delete') return { ...token, state: 'DEACTIVATED', suspendedBy: [], at: now }
  if (deed === 'activate') return state === 'INACTIVE' ? { ...token, state: 'ACTIVE', at: now } : undefined
  if (state === 'INACTIVE') return undefined
  const has = suspendedBy.includes(by)
  // MDES refuses to suspend twice, and to lift a suspension that isn't there.
  if ((deed === 'suspend') === has) return undefined
  const left = deed === 'suspend' ? [...suspendedBy, by] : suspendedBy.filter(one => one !== by)
  return { ...token, state: left.length === 0 ? 'ACTIVE' : 'SUSPENDED', suspendedBy: left, at: now }
}
