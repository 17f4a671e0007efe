// Owners and their cards as a sequential machine: what each deed makes of them, and what it is told. The real one does deeds
// side by side; whatever it then is must be what some order of the deeds makes of this.

/** A record of a chunk, or what a single job gives. */
export interface Given {
  card: number
  owner: number | undefined
  /** A network transaction id. */
  nti: string | undefined
}

export interface BatchPlan {
  policy: { on_orphan?: 'keep' | 'suspend' | 'delete'; relink?: boolean; on_conflict?: 'update' | 'keep' }
  /** By number. A chunk's line numbers follow those of the chunk before. */
  chunks: readonly (readonly Given[])[]
}

export type Deed =
  | { do: 'chunk'; batch: number; chunk: number }
  | { do: 'create'; given: Given }
  /** Of the token that the card had when the job was sent. */
  | { do: 'update'; token: number | undefined; given: Given }
  /** Of the single job with that number. */
  | { do: 'reverse'; job: number }

interface Token {
  card: number
  status: 'ACTIVE' | 'SUSPENDED' | 'DELETED'
  /** The single job that made it, while nobody has built on that. */
  maker: number | undefined
}

interface Reference {
  token: number
  ids: readonly string[]
  /** The id in use: the last one given. */
  used: string | undefined
  mark: { batch: number; line: number } | undefined
  /** The single job that wrote it last, and what that job found. */
  last: { job: number; before: Omit<Reference, 'last'> | undefined } | undefined
}

export interface Model {
  tokens: readonly Token[]
  references: ReadonlyMap<number, Reference>
  /** What chunks were told, by batch and number. */
  chunks: ReadonlyMap<string, string>
  reversed: ReadonlySet<number>
}

export const NOTHING: Model = { tokens: [], references: new Map(), chunks: new Map(), reversed: new Set() }
export const LINES = 10

export interface After {
  model: Model
  seen: string
}

/** A model that is changed in place. */
interface Draft {
  tokens: Token[]
  references: Map<number, Reference>
}

/** `job`: the number of a single job. */
export function act(model: Model, deed: Deed, job: number, batches: readonly BatchPlan[]): After {
  const draft: Draft = { tokens: model.tokens.map(token => ({ ...token })), references: new Map(model.references) }
  if (deed.do === 'reverse') return { model: reverse(model, draft, deed.job), seen: 'reversed' }
  if (deed.do === 'chunk') {
    const key = `${deed.batch} ${deed.chunk}`
    const told = model.chunks.get(key)
    if (told !== undefined) return { model, seen: told }
    const plan = batches[deed.batch]
    const seen = workChunk(draft, deed, plan?.chunks[deed.chunk] ?? [], plan?.policy ?? {})
    return { model: { ...model, ...draft, chunks: new Map([...model.chunks, [key, seen]]) }, seen }
  }
  const token = deed.do === 'create' ? tokenFor(draft, deed.given.card, job) : deed.token
  const found = token === undefined ? undefined : draft.tokens[token]
  if (token === undefined || !found || found.status === 'DELETED') return { model, seen: '404' }
  if (found.maker !== job) found.maker = undefined
  const seen = claim(draft, deed.given, token, { job })
  return { model: { ...model, ...draft }, seen }
}

/** The live token of a card. */
export function liveToken({ tokens }: Pick<Model, 'tokens'>, card: number): number | undefined {
  const found = tokens.findIndex(token => token.card === card && token.status !== 'DELETED')
  return found === -1 ? undefined : found
}

function tokenFor(draft: Draft, card: number, maker: number | undefined): number {
  return liveToken(draft, card) ?? draft.tokens.push({ card, status: 'ACTIVE', maker }) - 1
}

function claim(
  { references }: Draft,
  { owner, nti }: Given,
  token: number,
  by: { job: number } | { mark: NonNullable<Reference['mark']>; relinked: boolean; left: Set<number> },
): string {
  if (owner === undefined) return '-'
  const stored = references.get(owner)
  const mark = 'mark' in by ? by.mark : undefined
  if (stored?.mark && mark && stored.mark.batch === mark.batch && mark.line < stored.mark.line) {
    if ('left' in by) by.left.add(token)
    return 'OLDER'
  }
  const known = stored?.ids ?? []
  const ids = nti === undefined || known.includes(nti) ? known : [...known, nti]
  // An id that was listed before says nothing about the one in use.
  const used = nti === undefined || known.includes(nti) ? stored?.used : nti
  const before = stored && { token: stored.token, ids: stored.ids, used: stored.used, mark: stored.mark }
  references.set(owner, { token, ids, used, mark, last: 'job' in by ? { job: by.job, before } : undefined })
  if (!stored) return 'ADDED'
  if (stored.token !== token) {
    if ('left' in by) by.left.add(stored.token)
    return 'MOVED'
  }
  const isChanged = ids !== known || used !== stored.used || ('relinked' in by && by.relinked)
  return isChanged ? 'CHANGED' : 'UNCHANGED'
}

function workChunk(
  draft: Draft,
  { batch, chunk }: { batch: number; chunk: number },
  records: readonly Given[],
  { relink = false, on_orphan = 'keep' }: BatchPlan['policy'],
): string {
  const left = new Set<number>()
  const takenAtFirst = new Set(records.map(({ card }) => card).filter(card => liveToken(draft, card) !== undefined))
  const told = records.map((given, index) => {
    const mark = { batch, line: chunk * LINES + index + 1 }
    const isTaken = takenAtFirst.has(given.card) || liveToken(draft, given.card) !== undefined
    const kept = relink && !isTaken ? keptToken(draft, given, mark) : undefined
    const keeping = kept === undefined ? undefined : draft.tokens[kept]
    if (keeping) keeping.card = given.card
    const token = kept ?? tokenFor(draft, given.card, undefined)
    const row = draft.tokens[token]
    if (row) row.maker = undefined
    return claim(draft, given, token, { mark, relinked: kept !== undefined, left })
  })
  for (const token of left) {
    const row = draft.tokens[token]
    if (row && ownersOf(draft, token) === 0) endOrphan(row, on_orphan)
  }
  return told.join()
}

/** The token of an owner that gets the owner's new card. */
function keptToken(draft: Draft, { owner }: Given, mark: NonNullable<Reference['mark']>): number | undefined {
  const stored = owner === undefined ? undefined : draft.references.get(owner)
  if (!stored || draft.tokens[stored.token]?.status === 'DELETED') return undefined
  const isOlder = stored.mark && stored.mark.batch === mark.batch && mark.line < stored.mark.line
  return isOlder || ownersOf(draft, stored.token) !== 1 ? undefined : stored.token
}

/** Those who have it, and those who may come back to it when a single job is reversed. */
function ownersOf({ references }: Draft, token: number): number {
  return [...references.values()].filter(one => one.token === token || one.last?.before?.token === token).length
}

function endOrphan(row: Token, action: 'keep' | 'suspend' | 'delete'): void {
  if (row.status === 'DELETED' || action === 'keep') return
  row.status = action === 'delete' ? 'DELETED' : 'SUSPENDED'
  row.maker = undefined
}

function reverse(model: Model, draft: Draft, job: number): Model {
  if (model.reversed.has(job)) return model
  for (const token of draft.tokens)
    if (token.maker === job) Object.assign(token, { status: 'DELETED', maker: undefined })
  for (const [owner, reference] of draft.references) {
    if (reference.last?.job !== job) continue
    const { before } = reference.last
    const former = before && draft.tokens[before.token]
    const isBack = before && former && (before.token === reference.token || former.status !== 'DELETED')
    if (!isBack) draft.references.delete(owner)
    else {
      draft.references.set(owner, { ...before, last: undefined })
      if (before.token !== reference.token) former.maker = undefined
    }
  }
  return { ...model, ...draft, reversed: new Set([...model.reversed, job]) }
}

/** What the store shows of it. */
export function shape({ tokens, references }: Model) {
  return {
    cards: tokens.flatMap(({ card, status }) => (status === 'DELETED' ? [] : [`${card} ${status}`])).sort(),
    deleted: tokens.filter(({ status }) => status === 'DELETED').length,
    owners: [...references]
      .map(([owner, { token, ids, used = '-' }]) => {
        const { card, status } = tokens[token] ?? { card: -1, status: 'DELETED' }
        return `${owner} ${status === 'DELETED' ? 'gone' : card} ${ids.join('+')} ${used}`
      })
      .sort(),
  }
}
