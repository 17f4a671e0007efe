// Which data keys can be turned: replaced by a new version while processes work. A sealed value names the version of its
// key, and so does a keyed hash that is compared with a stored one.
import type { Purpose } from '../key-ring.ts'

/**
 * `changesValues`: values that others keep change with the key, which the operator must say to be meant. `inPhases`: by
 * acts/key/card-phase.ts.
 */
type Turning = { turns: true; changesValues?: true; inPhases?: true } | { turns: false; why: string }

export const TURNING: Record<Purpose, Turning> = {
  seal: { turns: true },
  'before-image': { turns: true },
  'three-ds': { turns: true },
  webhook: { turns: true },
  manifest: { turns: true },
  fingerprint: { turns: true, inPhases: true },
  'private-half': { turns: true },
  'network-token': { turns: true },
  audit: { turns: true },
  digest: { turns: true },
  'api-key': { turns: true },
  intake: { turns: true },
  owner: { turns: true },
  grant: { turns: true },
  analytics: { turns: true, changesValues: true },
  scratch: {
    turns: false,
    why: 'the chunks of a dry run are compared with one another under one version, and a dry run does not name it; its values are erased after 24 hours',
  },
}
