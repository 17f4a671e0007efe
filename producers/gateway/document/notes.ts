// The content of an OpenAPI document beyond the schemas of its routes: what each operation does, what its properties
// mean, and examples. It is data; complete.ts puts it into the document.
import type { Reason } from '../../../src/errors.ts'
import type { Notes } from '../../../src/job/describe/annotate.ts'

/** Media type → title → value. */
export type Examples = Readonly<Record<string, Readonly<Record<string, unknown>>>>

export interface AnswerNotes {
  /** The description of an answer whose schema has none. */
  description?: string
  examples?: Examples
}

export type ReasonExample = readonly [reason: Reason, field: string]

/** The body of an error example: made from a reason and its field, or given as a whole. */
export type RefusalExample = ReasonExample | Readonly<Record<string, unknown>>

export interface OperationNotes {
  description: string
  /** The values of the parameters in the example. */
  parameters?: Readonly<Record<string, string | number | readonly string[]>>
  body?: Examples
  /** Notes on answers, by status. */
  answers?: Readonly<Record<number, AnswerNotes>>
  /** Examples of refusals, by status. Without one, the document shows a refusal that every operation can have. */
  refusals?: Readonly<Record<number, RefusalExample>>
}

/** Notes on some operations. Those of several are joined by `joinNotes`. */
export interface DocumentNotes {
  /** The groups of operations, in the order of the document. */
  tags: readonly { name: string; description: string }[]
  properties: Notes
  /** Notes on operations, by operationId. */
  operations: Readonly<Record<string, OperationNotes>>
}

/**
 * Notes on paging parameters. Their defaults stand here, because a schema that turns a query's text into a number loses
 * its default.
 */
export function pages(operation: string, size: number): Notes {
  return {
    [`${operation}.query.pageNumber`]: { default: 1 },
    [`${operation}.query.pageSize`]: { default: size },
  }
}

/** One document's notes, of all these. */
export function joinNotes(all: readonly DocumentNotes[]): DocumentNotes {
  return {
    tags: all.flatMap(({ tags }) => tags),
    properties: Object.assign({}, ...all.map(({ properties }) => properties)),
    operations: Object.assign({}, ...all.map(({ operations }) => operations)),
  }
}

/** Examples of a JSON body. */
export function json(examples: Readonly<Record<string, unknown>>): Examples {
  return { 'application/json': examples }
}

/** The sentence about who may call an operation, made from its route's access. */
export function accessNote(access: 'public' | readonly string[] | undefined): string {
  if (access === 'public') return 'Needs no credentials.'
  if (access === undefined || access.length === 0) return ''
  return `Needs the role ${access.join(' and ')}.`
}
