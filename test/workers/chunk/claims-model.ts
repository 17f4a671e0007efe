// Owners and their cards as a sequential machine: what each deed makes of them, and what it is told. The real one does deeds
// side by side; whatever it then is must be what some order of the deeds makes of this.

/** A record of a chunk, or what a single job gives. */
export interface Given {
  card: number
  owner: number | undefined
  /** A network transaction id. */
  nti: string | undefined
  /** How long before the batch it was given; counts with `newest`. */
  age: number
}

/** Who gave a card. Whatever isn't of a batch with `newest` is later than any source time. */
type Giver = 'later' | { age: number; batch: number; line: number }

function isLater(one: Giver, other: Giver | undefined): boolean {
  if (other === undefined || one === 'later') return other !== 'later'
  if (other === 'later') return false
  if (one.age !== other.age) return one.age < other.age
  return one.batch === other.batch ? one.line > other.line : one.batch > other.batch
}

export interface BatchPlan {
  policy: { on_orphan?: 'keep' | 'suspend' | 'delete'; relink?: boolean; on_conflict?: 'update' | 'keep' | 'newest' }
  /** By number. A chunk's line numbers follow those of the chunk before. */
  chunks: readonly (readonly Given[])[]
}

export type Deed =
  | { do: 'chunk'; batch: number; chunk: number }
  | { do: 'create'; given: Given }
  /** Of the token that the card had when the job was sent. */
  | { do: 'update'; token: number | undefined; given: Given }
  /** The token gets the number of another card. */
  | { do: 'link'; token: number | undefined; card: number; to: number }
  /** Of the single job with that number. */
  | { do: 'reverse'; job: number }
  | { do: 'release'; owner: number }
  /** Of the token that the card had when the job was sent. */
  | { do: 'delete'; token: number | undefined; card: number }

interface Token {
  card: number
  status: 'ACTIVE' | 'SUSPENDED' | 'DELETED'
  /** The single job that made it, or gave it another number, while nobody has built on that. */
  last: { job: number; before: Pick<Token, 'card' | 'number'> | undefined } | undefined
  /** Who gave it another number than its first. */
  number: Giver | undefined
}

interface Reference {
  token: number
  ids: readonly string[]
  /** The id in use: the last one given. */
  used: string | undefined
  mark: { batch: number; line: number } | undefined
  giver: Giver
  /** The single job that wrote it last, and what that job found. */
  last: { job: number; before: Omit<Reference, 'last'> | undefined } | undefined
}

export interface Model {
  tokens: readonly Token[]
  references: ReadonlyMap<number, Reference>
  /** What chunks were told, by batch and number. */
  chunks: ReadonlyMap<string, string>
  reversed: ReadonlySet<number>
  /** The owners who lost a token that was deleted. */
  released: ReadonlySet<number>
}

export const NOTHING: Model = {
  tokens: [],
  references: new Map(),
  chunks: new Map(),
  reversed: new Set(),
  released: new Set(),
}
export const LINES = 10

export interface After {
  model: Model
  seen: string
}

/** A model that is changed in place. */
interface Draft {
  tokens: Token[]
  references: Map<number, Reference>
  released: Set<number>
}

/** `job`: the number of a single job. */
export function act(model: Model, deed: Deed, job: number, batches: readonly BatchPlan[]): After {
  const draft: Draft = {
    tokens: model.tokens.map(token => ({ ...token })),
    references: new Map(model.references),
    released: new Set(model.released),
  }
  if (deed.do === 'reverse') return { model: reverse(model, draft, deed.job), seen: 'reversed' }
  if (deed.do === 'chunk') {
    const key = `${deed.batch} ${deed.chunk}`
    const told = model.chunks.get(key)
    if (told !== undefined) return { model, seen: told }
    const plan = batches[deed.batch]
    const seen = workChunk(draft, deed, plan?.chunks[deed.chunk] ?? [], plan?.policy ?? {})
    return { model: { ...model, ...draft, chunks: new Map([...model.chunks, [key, seen]]) }, seen }
  }
  if (deed.do === 'release') return release(model, draft, deed.owner)
  if (deed.do === 'delete') return erase(model, draft, deed.token)
  const token = deed.do === 'create' ? tokenFor(draft, deed.given.card, job) : deed.token
  const found = token === undefined ? undefined : draft.tokens[token]
  if (token === undefined || !found || found.status === 'DELETED') return { model, seen: '404' }
  if (deed.do === 'link') {
    if (liveToken(draft, deed.to) !== undefined) return { model, seen: TAKEN }
    const { card, number } = found
    Object.assign(found, { card: deed.to, number: 'later', last: { job, before: { card, number } } })
    return { model: { ...model, ...draft }, seen: '-' }
  }
  if (found.last?.job !== job) found.last = undefined
  const seen = claim(draft, deed.given, token, { job })
  return { model: { ...model, ...draft }, seen }
}

/** The status for a number that another token has. */
const TAKEN = '400'

/** The live token of a card. */
export function liveToken({ tokens }: Pick<Model, 'tokens'>, card: number): number | undefined {
  const found = tokens.findIndex(token => token.card === card && token.status !== 'DELETED')
  return found === -1 ? undefined : found
}

function tokenFor(draft: Draft, card: number, maker: number | undefined): number {
  const last = maker === undefined ? undefined : { job: maker, before: undefined }
  return liveToken(draft, card) ?? draft.tokens.push({ card, status: 'ACTIVE', last, number: undefined }) - 1
}

function release(model: Model, draft: Draft, owner: number): After {
  if (!draft.references.delete(owner)) return { model, seen: model.released.has(owner) ? 'UNCHANGED' : '404' }
  draft.released.add(owner)
  return { model: { ...model, ...draft }, seen: 'UPDATED' }
}

function erase(model: Model, draft: Draft, token: number | undefined): After {
  const row = token === undefined ? undefined : draft.tokens[token]
  if (!row || row.status === 'DELETED') return { model, seen: '404' }
  Object.assign(row, { status: 'DELETED', last: undefined })
  releaseAll(draft, token)
  return { model: { ...model, ...draft }, seen: '204' }
}

function releaseAll({ references, released }: Draft, token: number | undefined): void {
  for (const [owner, reference] of references) {
    if (reference.token !== token) continue
    references.delete(owner)
    released.add(owner)
  }
}

function claim(
  { tokens, references }: Pick<Draft, 'tokens' | 'references'>,
  { owner, nti }: Given,
  token: number,
  by:
    | { job: number }
    | { mark: NonNullable<Reference['mark']>; giver: Giver | undefined; relinked: boolean; left: Set<number> },
): string {
  if (owner === undefined) return '-'
  const stored = references.get(owner)
  const mark = 'mark' in by ? by.mark : undefined
  const giver = 'giver' in by ? by.giver : undefined
  if (stored && mark && isOlder(stored, mark, giver)) {
    if (giver) compare({ tokens, references }, owner, mark, giver)
    if ('left' in by) by.left.add(token)
    return 'OLDER'
  }
  const known = stored?.ids ?? []
  const ids = nti === undefined || known.includes(nti) ? known : [...known, nti]
  // A list that is sent again leaves the id in use.
  const used = ids === known ? (stored?.used ?? nti) : nti
  const before = stored && {
    token: stored.token,
    ids: stored.ids,
    used: stored.used,
    mark: stored.mark,
    giver: stored.giver,
  }
  references.set(owner, {
    token,
    ids,
    used,
    mark,
    giver: giver ?? 'later',
    last: 'job' in by ? { job: by.job, before } : undefined,
  })
  if (!stored) return 'ADDED'
  if (stored.token !== token) {
    if ('left' in by) by.left.add(stored.token)
    return 'MOVED'
  }
  const isChanged = ids !== known || used !== stored.used || ('relinked' in by && by.relinked)
  return isChanged ? 'CHANGED' : 'UNCHANGED'
}

/** Whether a later claim stands. `giver`: of a batch with `newest`. */
function isOlder(stored: Reference, mark: NonNullable<Reference['mark']>, giver: Giver | undefined): boolean {
  if (giver) return isLater(stored.giver, giver)
  return stored.mark?.batch === mark.batch && mark.line < stored.mark.line
}

/** A claim that came too late was compared with it or its token's number, so no reversal takes that back any more. */
function compare(
  { tokens, references }: Pick<Draft, 'tokens' | 'references'>,
  owner: number,
  mark: NonNullable<Reference['mark']>,
  giver: Giver,
): void {
  const stored = references.get(owner)
  if (stored && !stored.mark) references.set(owner, { ...stored, mark, last: undefined })
  const row = stored && tokens[stored.token]
  if (row && !isLater(stored.giver, giver)) row.last = undefined
}

/** Whether a record of a batch with `newest` comes too late for its owner, so that nothing is done for it. */
function isLate(draft: Draft, { owner, card }: Given, giver: Giver): boolean {
  if (owner === undefined) return false
  const stored = draft.references.get(owner)
  if (!stored) return draft.released.has(owner)
  if (stored.token === liveToken(draft, card)) return false
  const number = draft.tokens[stored.token]?.number
  return isLater(stored.giver, giver) || (number !== undefined && isLater(number, giver))
}

function workChunk(
  draft: Draft,
  { batch, chunk }: { batch: number; chunk: number },
  records: readonly Given[],
  { relink = false, on_orphan = 'keep', on_conflict }: BatchPlan['policy'],
): string {
  const left = new Set<number>()
  const takenAtFirst = new Set(records.map(({ card }) => card).filter(card => liveToken(draft, card) !== undefined))
  const told = records.map((given, index) => {
    const mark = { batch, line: chunk * LINES + index + 1 }
    const giver = on_conflict === 'newest' ? { age: given.age, ...mark } : undefined
    if (giver && isLate(draft, given, giver)) {
      if (given.owner !== undefined) compare(draft, given.owner, mark, giver)
      return 'OLDER'
    }
    const isTaken = takenAtFirst.has(given.card) || liveToken(draft, given.card) !== undefined
    const kept = relink && !isTaken ? keptToken(draft, given, mark, giver) : undefined
    const keeping = kept === undefined ? undefined : draft.tokens[kept]
    if (keeping) Object.assign(keeping, { card: given.card, number: giver ?? 'later' })
    const token = kept ?? tokenFor(draft, given.card, undefined)
    const row = draft.tokens[token]
    if (row) row.last = undefined
    return claim(draft, given, token, { mark, giver, relinked: kept !== undefined, left })
  })
  for (const token of left) {
    const row = draft.tokens[token]
    if (row && ownersOf(draft, token) === 0) endOrphan(row, on_orphan)
  }
  return told.join()
}

/** The token of an owner that gets the owner's new card. */
function keptToken(
  draft: Draft,
  { owner }: Given,
  mark: NonNullable<Reference['mark']>,
  giver: Giver | undefined,
): number | undefined {
  const stored = owner === undefined ? undefined : draft.references.get(owner)
  if (!stored || draft.tokens[stored.token]?.status === 'DELETED') return undefined
  return isOlder(stored, mark, giver) || ownersOf(draft, stored.token) !== 1 ? undefined : stored.token
}

/** Those who have it, and those who may come back to it when a single job is reversed. */
function ownersOf({ references }: Draft, token: number): number {
  return [...references.values()].filter(one => one.token === token || one.last?.before?.token === token).length
}

function endOrphan(row: Token, action: 'keep' | 'suspend' | 'delete'): void {
  if (row.status === 'DELETED' || action === 'keep') return
  row.status = action === 'delete' ? 'DELETED' : 'SUSPENDED'
  row.last = undefined
}

function reverse(model: Model, draft: Draft, job: number): Model {
  if (model.reversed.has(job)) return model
  const { released } = draft
  for (const [owner, reference] of draft.references) {
    if (reference.last?.job !== job) continue
    const { before } = reference.last
    const former = before && draft.tokens[before.token]
    const isBack = before && former && (before.token === reference.token || former.status !== 'DELETED')
    if (!isBack) {
      draft.references.delete(owner)
      if (before) released.add(owner)
    } else {
      draft.references.set(owner, { ...before, last: undefined })
      if (before.token !== reference.token) former.last = undefined
    }
  }
  const owned = new Set([...draft.references.values()].map(({ token }) => token))
  for (const [index, token] of draft.tokens.entries())
    if (token.last?.job === job) takeTokenBack(draft, token, owned.has(index))
  return { ...model, ...draft, reversed: new Set([...model.reversed, job]) }
}

function takeTokenBack(draft: Draft, token: Token, isOwned: boolean): void {
  const { before } = token.last ?? {}
  if (!before && !isOwned) Object.assign(token, { status: 'DELETED', last: undefined })
  if (before && liveToken(draft, before.card) === undefined) Object.assign(token, { ...before, last: undefined })
}

/** What the store shows of it. */
export function shape({ tokens, references, released }: Model) {
  return {
    cards: tokens.flatMap(({ card, status }) => (status === 'DELETED' ? [] : [`${card} ${status}`])).sort(),
    deleted: tokens.filter(({ status }) => status === 'DELETED').length,
    owners: [...references]
      .map(([owner, { token, ids, used = '-' }]) => {
        const { card, status } = tokens[token] ?? { card: -1, status: 'DELETED' }
        return `${owner} ${status === 'DELETED' ? 'gone' : card} ${ids.join('+')} ${used}`
      })
      .sort(),
    released: [...released].sort(),
  }
}
