// Walks an OpenAPI document and lists missing descriptions and examples, and examples that don't fit their schemas.
import { Ajv2020 } from 'ajv/dist/2020.js'

export type Schema = Readonly<Record<string, unknown>>

export interface Media {
  schema?: Schema
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

interface Operation {
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  parameters?: {
    name: string
    in: string
    required?: boolean
    description?: string
    schema: Schema
    example?: unknown
  }[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { description?: string; content?: Record<string, Media> }>
}

export interface OpenApi {
  tags?: { name: string; description?: string }[]
  paths: Record<string, Record<string, Operation>>
}

export function operationsOf(document: OpenApi): Operation[] {
  return Object.values(document.paths).flatMap(operations => Object.values(operations))
}

/** Names of everything that has no description. */
export function undescribed(document: OpenApi): string[] {
  const known = new Map((document.tags ?? []).map(({ name, description }) => [name, description]))
  return operationsOf(document).flatMap(operation => {
    const { operationId: id, summary, description, tags = [], parameters = [], requestBody, responses } = operation
    const missing = [
      ...(summary && description ? [] : [id]),
      ...tags.filter(tag => !known.get(tag)).map(tag => `tag ${tag}`),
      ...parameters.filter(one => !one.description).map(one => `${id} ${one.in} ${one.name}`),
      ...mediaOf(requestBody).flatMap(({ media }) => silent(media.schema, `${id} body`)),
    ]
    for (const [status, answer] of Object.entries(responses)) {
      if (!answer.description || answer.description === 'Default Response') missing.push(`${id} ${status}`)
      missing.push(...mediaOf(answer).flatMap(({ media }) => silent(media.schema, `${id} ${status}`)))
    }
    return missing
  })
}

/** Names of properties without a description, at any depth. */
function silent(schema: Schema | undefined, path: string): string[] {
  if (schema === undefined) return []
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>)
  const deeper = [
    schema['items'],
    schema['additionalProperties'],
    ...['anyOf', 'oneOf', 'allOf'].map(key => schema[key]),
  ]
  return [
    ...properties.flatMap(([name, property]) => [
      ...(property['description'] ? [] : [`${path}.${name}`]),
      ...silent(property, `${path}.${name}`),
    ]),
    ...deeper
      .flat()
      .filter((one): one is Schema => typeof one === 'object' && one !== null)
      .flatMap(one => silent(one, path)),
  ]
}

/** Names of requests and answers that no example shows. */
export function unexampled(document: OpenApi): string[] {
  return operationsOf(document).flatMap(({ operationId: id, parameters = [], requestBody, responses }) => {
    const shown = parameters.filter(({ example }) => example !== undefined)
    const isShown = mediaOf(requestBody).length > 0 || shown.length > 0
    const bodies = [
      ...mediaOf(requestBody).map(one => ({ ...one, name: `${id} body` })),
      ...Object.entries(responses).flatMap(([status, answer]) =>
        mediaOf(answer).map(one => ({ ...one, name: `${id} ${status}` })),
      ),
    ]
    return [
      ...(isShown ? [] : [`${id} request`]),
      ...parameters.filter(one => one.required && one.example === undefined).map(({ name }) => `${id} ${name}`),
      ...bodies.filter(({ media }) => valuesOf(media).length === 0).map(({ name, type }) => `${name} ${type}`),
    ]
  })
}

/** What each example that its own schema refuses has wrong. */
export function misfits(document: OpenApi): string[] {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  const refused = (name: string, schema: Schema | undefined, value: unknown) => {
    if (schema === undefined) return []
    const validate = ajv.compile(schema)
    return validate(value) ? [] : [`${name}: ${ajv.errorsText(validate.errors)}`]
  }
  return operationsOf(document).flatMap(({ operationId: id, parameters = [], requestBody, responses }) => [
    ...parameters.flatMap(({ name, schema, example }) =>
      example === undefined ? [] : refused(`${id} ${name}`, schema, example),
    ),
    ...Object.entries({ body: requestBody, ...responses }).flatMap(([place, body]) =>
      mediaOf(body).flatMap(({ media }) =>
        valuesOf(media).flatMap(value => refused(`${id} ${place}`, media.schema, value)),
      ),
    ),
  ])
}

/** Statuses of errors, with the bodies that show them. */
export function refusalsOf(document: OpenApi): { id: string; status: number; body: Record<string, unknown> }[] {
  return operationsOf(document).flatMap(({ operationId: id, responses }) =>
    Object.entries(responses)
      .filter(([status]) => Number(status) >= 400)
      .flatMap(([status, answer]) =>
        mediaOf(answer).flatMap(({ media }) =>
          valuesOf(media).map(body => ({ id, status: Number(status), body: body as Record<string, unknown> })),
        ),
      ),
  )
}

function mediaOf(body: { content?: Record<string, Media> } | undefined): { type: string; media: Media }[] {
  return Object.entries(body?.content ?? {}).map(([type, media]) => ({ type, media }))
}

/** All examples of one body. */
export function valuesOf({ example, examples = {} }: Media): unknown[] {
  return [...(example === undefined ? [] : [example]), ...Object.values(examples).map(({ value }) => value)]
}
