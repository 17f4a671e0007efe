// What a kind of subject brings for the pages of its acts: how one is found with the person's sight, what is shown of it,
// and what the passkey signs. The page, its form and the way to a worker are the same for all (act-page.ts, act-routes.ts).
import { type ActName, rowOf } from '../../../src/job/system/act.ts'
import { type ActRow, has } from '../../../src/job/system/act-row.ts'
import type { SentAct } from '../../../src/store/console/pending-acts.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import type { ConsoleDeps } from '../deps.ts'
import type { Html, Path } from '../html.ts'
import type { Page } from '../server/page.ts'
import type { Intended } from './request.ts'

/**
 * How a request names an act and its subject: by the path, and by the fields of its form; by the query of the page only for an
 * `ActSubject` with `takesQuery`.
 */
export interface Asked {
  params: Readonly<Record<string, string>>
  given: Readonly<Record<string, unknown>>
}

/** An act on a subject as it is now. */
export interface ShownAct {
  act: ActName
  /** The page, and the target of its form. */
  to: Path
  back: { to: Path; text: string }
  /** What identifies the subject and says how it is. */
  shown: Html
  /** What the act counts: `41,200 rows`. */
  counted: string
  /** What will happen; undefined: nothing, and `instead` says why. */
  effect: string | undefined
  instead: string
  /** What the person saw, as a worker compares it; null: there is nothing yet. */
  seen: string | null
  /** What the person writes besides the reason. */
  inputs?: Html
  /** Fields of the form by which the subject is found again. */
  fields: Readonly<Record<string, string>>
  /** The command that does the same. */
  command: Html
}

/** What is signed of an act, beside its person, its reason and what the person saw. */
export interface SignedAct extends Pick<Intended, 'act' | 'subject' | 'parameters'> {
  /** The batch that it is about. */
  batchNo: number | null
}

/** What was written doesn't make an act: why, as a sentence. */
export interface Wrong {
  act: ActName
  wrong: string
}

/** What the functions of a kind of subject get. */
export interface Asking {
  deps: ConsoleDeps
  session: LiveSession
  asked: Asked
}

/** Both functions resolve with undefined for what isn't there, and for what isn't the person's to see. */
export interface ActSubject {
  /** The path of the pages: `/batches/:no/:act`. */
  route: string
  at: NonNullable<Page['at']>
  /** What it is done to, if that isn't what the act's row says. */
  noun?: string
  /** The query of the page names the subject. Without it a link can't fill in what the person is to write or choose. */
  takesQuery?: true
  show(asking: Asking): Promise<ShownAct | undefined>
  sign(asking: Asking): Promise<SignedAct | Wrong | undefined>
}

/** A worker decides it again by the same row; this only keeps a page from offering what would be refused. */
export function mayDo(act: ActName, person: Pick<LiveSession, 'roles'>): boolean {
  return rowOf(act).roles.some(role => person.roles.includes(role))
}

/** `Pause a batch`. */
export function titleOf(act: ActName, { noun = rowOf(act).noun }: Pick<ActSubject, 'noun'> = {}): string {
  return `${rowOf(act).verb} ${noun}`
}

/** Of these acts those that the person may do, in their order. */
export function permittedOf<Name extends ActName>(
  rows: Record<Name, ActRow>,
  person: Pick<LiveSession, 'roles'>,
): Name[] {
  return (Object.keys(rows) as Name[]).filter(name => mayDo(name, person))
}

/** The act that the address of a page names by its last word. */
export function actIn<Rows extends object>(
  rows: Rows,
  group: string,
  { params }: Pick<Asked, 'params'>,
): keyof Rows | undefined {
  const name = `${group}.${params['act']}`
  return has(rows, name) ? name : undefined
}

/** The class of the button that does it. */
export const buttonOf = (act: ActName) => (rowOf(act).isFinal ? 'main danger' : 'main')

/** The last word of its name, which is that of its page and its command, too: `pause`. */
export const wordOf = (act: ActName) => act.slice(act.indexOf('.') + 1)

/** An act that was sent, as the page of its verdict describes it. */
export interface SentDescription {
  /** If it isn't the title of the act. */
  title?: string
  at: NonNullable<Page['at']>
  /** What it was done to, and how that is now. */
  facts: readonly (readonly [string, Html])[]
  back: Html
  /** It is recorded, and workers are still doing it. */
  goesOn?: boolean
  /** What was done, if there is more to say than that. */
  done?: string | undefined
  /** What follows from the verdict for the person who acted. */
  more?: Html | undefined
}

export type DescribeSent = (sent: { deps: ConsoleDeps; session: LiveSession; act: SentAct }) => Promise<SentDescription>
