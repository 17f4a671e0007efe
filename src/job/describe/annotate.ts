// Writes descriptions, defaults and lists of values into a JSON Schema by the names of its properties, so that a
// property is described once for all documents. The notes have no effect on parsing.

/** A description, or keywords of JSON Schema with a description among them. */
type Note = string | Readonly<Record<string, unknown>>

/** A property's name, or the end of its path (`scheme_token.status`); the longest key that fits a path wins. */
export type Notes = Readonly<Record<string, Note>>

export type JsonSchema = Readonly<Record<string, unknown>>

/** `schema` with its notes. Keywords of the schema itself win. */
export function annotate(schema: JsonSchema, path: readonly string[], notes: Notes): JsonSchema {
  return within({ ...keywordsOf(notes[path.join('.')]), ...schema }, path, notes)
}

/** The keywords that `notes` have for the property at the end of `path`. */
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
