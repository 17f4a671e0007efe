// Completes an OpenAPI document that was made from routes and their schemas: descriptions, defaults and examples. A
// part without a note gets no description; a test reports it.
import { annotate, type JsonSchema, noteFor } from '../../../src/job/describe/annotate.ts'
import type { ErrorBody } from '../error-bodies.ts'
import type { DocumentNotes, Examples, OperationNotes } from './notes.ts'
import { refusalBody } from './refusals.ts'

/** The parts of a document that this file reads; the others are kept. */
export interface OpenApi {
  paths?: Record<string, Record<string, Operation>>
}

interface Operation {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: Content; [keyword: string]: unknown }
  responses: Record<string, { description: string; content?: Content }>
  [keyword: string]: unknown
}

interface Parameter {
  name: string
  in: string
  description?: string
  schema: JsonSchema
}

type Content = Record<string, { schema?: JsonSchema }>

/** These answers say when to come again. */
const RETRIED: readonly number[] = [202, 429]
const RETRY_AFTER = {
  'Retry-After': {
    description: 'After how many seconds to ask again: for the result, or with the same request.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
}

/** The text that the library writes for an answer whose schema has no description. */
const NO_DESCRIPTION = 'Default Response'

/** What is known of the document beyond its schemas. */
export interface Known {
  notes: DocumentNotes
  errorBodies: readonly ErrorBody[]
}

export function complete<D extends OpenApi>(document: D, known: Known): D {
  const paths = Object.entries(document.paths ?? {}).map(([path, operations]) => [
    path,
    mapValues(operations, operation => completeOperation(path, operation, known)),
  ])
  return { ...document, paths: Object.fromEntries(paths) }
}

function completeOperation(path: string, operation: Operation, { notes, errorBodies }: Known): Operation {
  const { operationId: id, parameters, requestBody, responses } = operation
  const own = notes.operations[id]
  return {
    ...operation,
    ...(parameters && { parameters: parameters.map(parameter => completeParameter(parameter, id, own, notes)) }),
    ...(requestBody && {
      requestBody: { ...requestBody, content: contentOf(requestBody.content, [id, 'body'], own?.body, notes) },
    }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, { description, content, ...rest }]) => {
        const said = own?.answers?.[Number(status)]
        const isRefusal = Number(status) >= 400
        const examples = isRefusal ? refusalExamples(path, Number(status), own, errorBodies) : said?.examples
        const at = [id, isRefusal ? 'error' : status]
        const answer = {
          ...rest,
          ...(RETRIED.includes(Number(status)) ? { headers: RETRY_AFTER } : {}),
          description: description === NO_DESCRIPTION ? (said?.description ?? '') : description,
        }
        return [status, content ? { ...answer, content: contentOf(content, at, examples, notes) } : answer]
      }),
    ),
  }
}

function completeParameter(
  parameter: Parameter,
  id: string,
  own: OperationNotes | undefined,
  { properties }: DocumentNotes,
): Parameter {
  const { name, in: place, schema, description } = parameter
  const example = own?.parameters?.[name]
  const { description: noted, ...keywords } = noteFor([id, place, name], properties)
  const said = description ?? noted
  return {
    ...parameter,
    ...(typeof said === 'string' ? { description: said } : {}),
    schema: { ...keywords, ...schema },
    ...(example === undefined ? {} : { example }),
  }
}

function contentOf(content: Content, path: string[], examples: Examples | undefined, notes: DocumentNotes): Content {
  return Object.fromEntries(
    Object.entries(content).map(([type, { schema, ...rest }]) => [
      type,
      {
        ...rest,
        ...(schema && { schema: annotate(schema, path, notes.properties) }),
        ...exampleOf(examples?.[type]),
      },
    ]),
  )
}

/** One example stands alone; several are listed by their titles. */
function exampleOf(examples: Readonly<Record<string, unknown>> | undefined): object {
  const entries = Object.entries(examples ?? {})
  if (entries.length === 0) return {}
  if (entries.length === 1) return { example: entries[0]?.[1] }
  return { examples: Object.fromEntries(entries.map(([title, value]) => [title, { summary: title, value }])) }
}

function refusalExamples(
  path: string,
  status: number,
  own: OperationNotes | undefined,
  errorBodies: readonly ErrorBody[],
): Examples {
  return { 'application/json': { refused: refusalBody(path, status, own?.refusals?.[status], errorBodies) } }
}

function mapValues<T, U>(record: Record<string, T>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))
}
