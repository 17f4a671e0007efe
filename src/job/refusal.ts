// Turns zod's errors into refusals with field names and reasons, never with a value. Senders also choose the keys of an
// object, so a refusal repeats only short plain names.
import type { z } from 'zod'
import { type FieldReason, REASONS, type Reason, type Refusal } from '../errors.ts'

type Issue = z.core.$ZodRawIssue

const FIELDS_SHOWN_MAX = 50

/** Parses `input`. On failure returns a refusal that names the wrong fields under `prefix` (`body`), at most 50. */
export function parse<T>(schema: z.ZodType<T>, input: unknown, prefix: string): { value: T } | Refusal {
  const parsed = schema.safeParse(input, { error: reasonOf })
  if (parsed.success) return { value: parsed.data }
  const [first = { field: prefix, reason: 'field_value' as const }, ...also] = parsed.error.issues
    .flatMap(issue => wrongFields(issue, prefix))
    .slice(0, FIELDS_SHOWN_MAX)
  return { refused: true, ...first, also }
}

// The reason's word of an issue. zod keeps it as the issue's message, where `wrongFields` reads it.
function reasonOf(issue: Issue): Reason {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'field_required' : 'field_type'
    case 'too_small':
    case 'too_big':
      return issue.origin === 'string' || issue.origin === 'array' ? 'field_length' : 'field_range'
    case 'invalid_format':
      return 'field_format'
    case 'unrecognized_keys':
      return 'field_unknown'
    case 'invalid_union':
      return issue.input === undefined ? 'field_required' : 'field_type'
    case 'custom': {
      const reason = (issue.params as { reason?: unknown } | undefined)?.reason
      return typeof reason === 'string' && Object.hasOwn(REASONS, reason) ? (reason as Reason) : 'field_value'
    }
    default:
      return issue.input === undefined ? 'field_required' : 'field_value'
  }
}

const NOT_HERE: ReadonlyMap<string, Reason> = new Map([
  ['cvv', 'cvv_not_allowed'],
  ['card', 'card_not_allowed'],
])

function wrongFields(issue: z.core.$ZodIssue, prefix: string): (FieldReason & { reason: Reason })[] {
  const path = [prefix, ...issue.path.map(part => (typeof part === 'number' ? String(part) : plain(String(part))))]
  if (issue.code !== 'unrecognized_keys') return [{ field: path.join('.'), reason: issue.message as Reason }]
  return issue.keys.map(key => ({
    field: [...path, plain(key)].join('.'),
    reason: NOT_HERE.get(key) ?? 'field_unknown',
  }))
}

function plain(key: string): string {
  return /^[A-Za-z_][A-Za-z_.-]{0,63}$/.test(key) || /^[a-z_]{1,40}\d{1,3}$/.test(key) ? key : '(unnamed)'
}
