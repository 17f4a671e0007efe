// The attributes that a span may have, and the form of their values. The compiler refuses any other name; at run time a
// value of another form is left out. So no text of an exception, no query and no reference gets into a trace.
import { holdsPossiblePan } from '../token/possible-pan.ts'

/** At most 10 digits: a card number has more. */
const COUNT_MAX = 2 ** 31 - 1
const isCount = (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= COUNT_MAX
/** Texts of up to 12 characters aren't checked: no check of names looks for card numbers of 12 digits. */
const SHORT = 12
const isText = (form: RegExp) => (value: unknown) =>
  typeof value === 'string' && form.test(value) && !couldBeCard(value)

/** A word of tokenmill's own: a kind, an outcome, the code of a fault, an HTTP status. */
const WORD = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/
/** A batch's id. Ids that could be card numbers are left out. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/
/** A UUID. It counts as no card number, whatever its digits are. */
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/
/** The template of a route, such as `/oidc/api/v2/card/:id`; never the path of a request. */
const ROUTE = /^\/[A-Za-z0-9_/:.*{}-]{0,127}$/

/**
 * Whether a name could be a card number, however its digits are grouped. Such a name isn't sent to a collector in any
 * form: a hash of so few digits hides nothing.
 */
export function couldBeCard(name: string): boolean {
  return name.length > SHORT && (holdsPossiblePan(name) || holdsPossiblePan(name.replace(/[_-]/g, '')))
}

/** Whether the text is a batch's id that may be sent to a collector. */
export const isBatchName = isText(NAME)

/** The permitted attributes. If OpenTelemetry's semantic conventions have a name for one, that name is used. */
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
  'set.jobs': isCount,
} as const satisfies Record<string, (value: unknown) => boolean>

export type Attribute = keyof typeof ATTRIBUTES
export type Attributes = { readonly [A in Attribute]?: string | number | undefined }

const isAttribute = (name: string): name is Attribute => Object.hasOwn(ATTRIBUTES, name)

/** The attributes whose values may be sent. */
export function allowed(attributes: Attributes): Record<string, string | number> {
  const told: Record<string, string | number> = {}
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && isAttribute(name) && ATTRIBUTES[name](value)) told[name] = value
  return told
}

/** The names of our spans. The span of an HTTP request is named by method and route template instead. */
export const SPANS = [
  'await worker',
  'job',
  'batch',
  'prepare',
  'reach',
  'decide',
  'remember',
  'set',
  'publish',
  'publish waiting results',
  'call provider',
  'find at provider',
  'make report',
] as const
export type SpanName = (typeof SPANS)[number] | `${string} /${string}`

const REQUEST = /^[A-Z]{1,16} \/[A-Za-z0-9_/:.*{}-]{0,127}$/

/** The name that is sent: one of SPANS, or method and template of a route; `unknown` for anything else. */
export function nameOf(name: SpanName): string {
  const isKnown = (SPANS as readonly string[]).includes(name) || (REQUEST.test(name) && !couldBeCard(name))
  return isKnown ? name : 'unknown'
}
