// The row of an act of a person: what the console shows of it, what a worker holds whoever asks to, and what the audit's proof is
// compared with. Each of them imports the row by itself, so none comes from a request or a page. The rows stand with what the acts are
// done to, and act.ts joins them; the deeds are in workers/act.
import type { z } from 'zod'

export const PERSON_ROLES = ['VIEWER', 'OPERATOR', 'ADMIN'] as const
export type PersonRole = (typeof PERSON_ROLES)[number]

/** What acts are done to: each has one deed in workers/act.ts, and one page for what became of an act. */
export type ActOn = 'batch' | 'failed' | 'schedule' | 'people' | 'passkey' | 'identity' | 'invited' | 'list'

interface Asked {
  subject: string
  parameters: Readonly<Record<string, unknown>>
}

export interface ActRow {
  on: ActOn
  /** On the button, before what the act counts; in the title before `noun`: `Pause`. */
  verb: string
  /** What it is done to: `a batch`. */
  noun: string
  roles: readonly PersonRole[]
  /**
   * `own`: done to the person who acts, by a passkey of that person or an invite, and no reason is kept. `sight`: the person's
   * entities decide what it may be done to. `all`: only people for all entities do it.
   */
  reach: 'own' | 'sight' | 'all'
  /** Nobody can take it back. */
  isFinal: boolean
  parameters: z.ZodType
  /** What it is done to has a state: the request says which one the person saw. */
  isSeen: boolean
  /** It is nothing without its reason: what the page asks for in place of why. */
  asks?: string
  /** What the audit row's detail has of the request: all of it if the act is done, else some. */
  facts: (request: Asked) => Readonly<Record<string, unknown>>
}

export function has<Rows extends object>(rows: Rows, name: PropertyKey): name is keyof Rows {
  return Object.hasOwn(rows, name)
}

export const noFacts: ActRow['facts'] = () => ({})
