// What a span may say: names of attributes, and what each may hold. Everything else is left out, at compile time by its
// name and at run time by its value too, so that no text of an exception, no query and no reference gets into a trace.
import { holdsPossiblePan } from '../token/possible-pan.ts'

/** 10 digits: no card number has so few. */
const COUNT_MAX = 2 ** 31 - 1
const isCount = (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= COUNT_MAX
/** A number of 12 digits isn't looked for, though a card's may be so short: no check of names looks for one. */
const SHORT = 12
const isText = (form: RegExp) => (value: unknown) =>
  typeof value === 'string' && form.test(value) && !couldBeCard(value)

/** One word of ours: a kind, an outcome, the code of a fault, an HTTP status. */
const WORD = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/
/** A batch's id: names that could be card numbers are left out. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/
/** Hexadecimal, which is no card number whatever its digits are. */
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/
/** A route's template, as `/oidc/api/v2/card/:id`; never the path of a request. */
const ROUTE = /^\/[A-Za-z0-9_/:.*{}-]{0,127}$/

/**
 * A name that could be a card number, however its digits are grouped, is told to no collector in any form: a hash of so
 * few digits hides nothing.
 */
export function couldBeCard(name: string): boolean {
  return name.length > SHORT && (holdsPossiblePan(name) || holdsPossiblePan(name.replace(/[_-]/g, '')))
}

/** Whether the text has a batch's name, and one that may be told. */
export const isBatchName = isText(NAME)

/** Names of OpenTelemetry's semantic conventions where there is one. */
export const ATTRIBUTES = {
  'http.request.method': isText(WORD),
  'http.route': isText(ROUTE),
  'http.response.status_code': isCount,
  'error.type': isText(WORD),
  'job.kind': isText(WORD),
  'job.receipt': value => typeof value === 'string' && UUID.test(value),
  'batch.id': isBatchName,
  'batch.chunk': isCount,
  'batch.records': isCount,
  'batch.chunks': isCount,
  'job.attempt': isCount,
  'job.wait_ms': isCount,
  'job.outcome': isText(WORD),
  'provider.name': isText(WORD),
  'provider.call': isText(WORD),
  'provider.answer': isText(WORD),
  'report.type': isText(WORD),
  'report.lines': isCount,
  'results.count': isCount,
} as const satisfies Record<string, (value: unknown) => boolean>

export type Attribute = keyof typeof ATTRIBUTES
export type Attributes = { readonly [A in Attribute]?: string | number | undefined }

const isAttribute = (name: string): name is Attribute => Object.hasOwn(ATTRIBUTES, name)

/** Those that may be told. */
export function allowed(attributes: Attributes): Record<string, string | number> {
  const told: Record<string, string | number> = {}
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && isAttribute(name) && ATTRIBUTES[name](value)) told[name] = value
  return told
}

/** The parts of our work that have a span; a request over HTTP has its method and its route's template. */
export const SPANS = [
  'await worker',
  'job',
  'batch',
  'prepare',
  'reach',
  'decide',
  'remember',
  'publish',
  'publish waiting results',
  'call provider',
  'find at provider',
  'make report',
] as const
export type SpanName = (typeof SPANS)[number] | `${string} /${string}`

const REQUEST = /^[A-Z]{1,16} \/[A-Za-z0-9_/:.*{}-]{0,127}$/

/** The name that is told: ours, or method and template of a route; of anything else that it is unknown. */
export function nameOf(name: SpanName): string {
  const isKnown = (SPANS as readonly string[]).includes(name) || (REQUEST.test(name) && !couldBeCard(name))
  return isKnown ? name : 'unknown'
}
