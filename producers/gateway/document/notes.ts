// The content of an OpenAPI document beyond the schemas of its routes: what each operation does, what its properties
// mean, and examples. It is data; complete.ts puts it into the document.
import type { Reason } from '../../../src/errors.ts'
import type { Notes } from '../../../src/job/describe/annotate.ts'

/** Media type → title → value. */
export type Examples = Readonly<Record<string, Readonly<Record<string, unknown>>>>

export interface AnswerNotes {
  /** Where the schema of the answer says none. */
  description?: string
  examples?: Examples
}

export type ReasonExample = readonly [reason: Reason, field: string]

/** Why an example is refused: a reason and its field, or the whole body of the answer. */
export type RefusalExample = ReasonExample | Readonly<Record<string, unknown>>

export interface OperationNotes {
  description: string
  /** A value for each parameter that the example shows. */
  parameters?: Readonly<Record<string, string | number>>
  body?: Examples
  /** By status. */
  answers?: Readonly<Record<number, AnswerNotes>>
  /** By status; without one the document has a refusal that every operation can answer. */
  refusals?: Readonly<Record<number, RefusalExample>>
}

export interface DocumentNotes {
  /** Groups of operations, in the order of the document. */
  tags: readonly { name: string; description: string }[]
  properties: Notes
  /** By operationId. */
  operations: Readonly<Record<string, OperationNotes>>
}

/** Examples of a JSON body. */
export function json(examples: Readonly<Record<string, unknown>>): Examples {
  return { 'application/json': examples }
}

/** The access to an operation, as its route names it. */
export function accessNote(access: 'public' | readonly string[] | undefined): string {
  if (access === 'public') return 'Needs no credentials.'
  if (access === undefined || access.length === 0) return ''
  return `Needs the role ${access.join(' and ')}.`
}
