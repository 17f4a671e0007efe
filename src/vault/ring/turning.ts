// How each data key is replaced by a new version while processes work. A sealed value names the version of its key, and so
// does a keyed hash that is compared with a stored one.
import type { Purpose } from './key-ring.ts'

/**
 * `changesValues`: values that others keep change with the key, so the operator must say that this is meant. `inPhases`:
 * acts/key/card-phase.ts replaces the key.
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
  receipt: {},
  analytics: { changesValues: true },
}
