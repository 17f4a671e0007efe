// Writes descriptions, defaults and lists of values into a JSON Schema by the names of its properties. Each property is
// described once for all documents. The notes don't change what the schema accepts.

/** A description, or an object of JSON Schema keywords that includes a description. */
type Note = string | Readonly<Record<string, unknown>>

/**
 * Keys are the name of a property, or the end of its path (`scheme_token.status`); the longest key that matches a path
 * wins.
 */
export type Notes = Readonly<Record<string, Note>>

export type JsonSchema = Readonly<Record<string, unknown>>

/** Returns `schema` with the notes added. Keywords that the schema already has win. */
export function annotate(schema: JsonSchema, path: readonly string[], notes: Notes): JsonSchema {
  return within({ ...keywordsOf(notes[path.join('.')]), ...schema }, path, notes)
}

/** The keywords of the longest key in `notes` that matches `path`. */
export function noteFor(path: readonly string[], notes: Notes): JsonSchema {
  const found = path.map((_, start) => path.slice(start).join('.')).find(key => Object.hasOwn(notes, key))
  return keywordsOf(found === undefined ? undefined : notes[found])
}

function keywordsOf(note: Note | undefined): JsonSchema {
  return typeof note === 'string' ? { description: note } : { ...note }
}

function within(schema: JsonSchema, path: readonly string[], notes: Notes): JsonSchema {
  const made: Record<string, unknown> = { ...schema }
  for (const keyword of ['anyOf', 'oneOf', 'allOf'])
    if (Array.isArray(schema[keyword])) made[keyword] = schema[keyword].map(one => within(one, path, notes))
  if (isSchema(schema['items'])) made['items'] = within(schema['items'], path, notes)
  if (isSchema(schema['additionalProperties']))
    made['additionalProperties'] = within(schema['additionalProperties'], [...path, '*'], notes)
  if (isSchema(schema['properties']))
    made['properties'] = Object.fromEntries(
      Object.entries(schema['properties']).map(([name, property]) => {
        const at = [...path, name]
        return [name, within({ ...noteFor(at, notes), ...(property as JsonSchema) }, at, notes)]
      }),
    )
  return made
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
