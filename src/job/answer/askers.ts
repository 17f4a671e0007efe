// Whose an effect is. Several envelopes may ask for one effect: an HTTP request and its repeats, on one gateway or on several.
// A sender that was told nothing in time gives its envelope up, and the effect is undone only when every envelope that asked
// for it was given up: somebody may have been told that it holds.
export type Askers = Readonly<Record<string, boolean>>

interface Effected {
  envelopeDigest: Buffer
  status: 'SUCCEEDED' | 'FAILED' | 'CANCELLED'
  outcome: string | null
  tokenId: string | null
  reversal: 'REQUIRED' | 'COMPLETED' | null
  /** Null while only the envelope that took effect has asked. */
  askers: Askers | null
}

/** An effect that more envelopes ask for stays for good. */
const ASKERS_MAX = 16

/** Whether a reversal could undo the effect at all: the job changed a token, and didn't delete it. */
export function isUndoable({ status, outcome, tokenId, reversal }: Effected): boolean {
  return status === 'SUCCEEDED' && tokenId !== null && outcome !== 'DELETED' && reversal === null
}

/** For each envelope, by its digest in base64url: whether it was given up. The first is the one that took effect. */
export function askersOf({ envelopeDigest, askers }: Pick<Effected, 'envelopeDigest' | 'askers'>): Askers {
  return askers ?? { [nameOf(envelopeDigest)]: false }
}

/** Whether this envelope is known to ask, and not given up. */
export function isAsker(effected: Pick<Effected, 'envelopeDigest' | 'askers'>, envelope: Buffer): boolean {
  return askersOf(effected)[nameOf(envelope)] === false
}

/** The askers with this one, which may have been given up before it came. The same object if nothing is new. */
export function withAsker(askers: Askers, envelope: Buffer): Askers {
  const name = nameOf(envelope)
  // One more than the limit is kept: it says that the effect stays.
  return name in askers || Object.keys(askers).length > ASKERS_MAX ? askers : { ...askers, [name]: false }
}

/** The askers when these envelopes, in base64url, are given up; those that haven't asked yet never will. */
export function withoutAskers(askers: Askers, envelopes: readonly string[]): Askers {
  const known = envelopes.filter((name, index) => name in askers || Object.keys(askers).length + index < ASKERS_MAX)
  return { ...askers, ...Object.fromEntries(known.map(name => [name, true])) }
}

/** Whether nobody who asked can have been told that the effect holds. */
export function areGivenUp(askers: Askers): boolean {
  const ends = Object.values(askers)
  return ends.length <= ASKERS_MAX && ends.every(isGivenUp => isGivenUp)
}

const nameOf = (envelope: Buffer) => envelope.toString('base64url')
