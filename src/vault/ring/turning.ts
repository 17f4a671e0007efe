// How data keys are turned: replaced by a new version while processes work. A sealed value names the version of its
// key, and so does a keyed hash that is compared with a stored one.
import type { Purpose } from '../key-ring.ts'

/**
 * `changesValues`: values that others keep change with the key, which the operator must say to be meant. `inPhases`: by
 * acts/key/card-phase.ts.
 */
interface Turning {
  changesValues?: true
  inPhases?: true
}

export const TURNING: Record<Purpose, Turning> = {
  seal: {},
  'before-image': {},
  'three-ds': {},
  webhook: {},
  manifest: {},
  fingerprint: { inPhases: true },
  'private-half': {},
  'network-token': {},
  audit: {},
  digest: {},
  'api-key': {},
  intake: {},
  owner: {},
  grant: {},
  analytics: { changesValues: true },
  // Nothing uses it: dry runs keep cards by their fingerprints. It stays because workers of release 0.3 don't start without it.
  scratch: {},
}
