// Names that senders choose and that are stored in clear: a job's jti, a batch's id, a report's parameters. None may be
// a possible card number. pan-in-names.ts checks names for the job's own card, whatever the client's rule.
import { type Refusal, refuse } from '../../errors.ts'
import { holdsPossiblePan } from '../../token/possible-pan.ts'

/**
 * `numeric`: the client uses long numbers as names, some of which look like card numbers by chance; none is refused for
 * that.
 */
export const NAME_RULES = ['checked', 'numeric'] as const
export type NameRule = (typeof NAME_RULES)[number]

interface Named {
  jti?: string
  request: Record<string, unknown>
}

/** The first name that is refused; the batch's id before the jti, which contains it. */
export function panNameRefusal({ jti, request }: Named, rule: NameRule): Refusal | undefined {
  if (rule === 'numeric') return undefined
  const { batch_id: batchId, parameters } = request
  if (typeof batchId === 'string' && holdsPossiblePan(batchId)) return refuse('batch_id_pan', 'body.request.batch_id')
  const parameter = parameterRefusal(parameters)
  if (parameter) return parameter
  return jti !== undefined && holdsPossiblePan(jti) ? refuse('jti_pan', 'body.jti') : undefined
}

/** Checks a report's parameters: texts, whole numbers and their names. */
function parameterRefusal(parameters: unknown): Refusal | undefined {
  for (const [name, value] of Object.entries(parameters ?? {})) {
    // A name that holds the number isn't repeated either.
    if (holdsPossiblePan(name)) return refuse('parameter_pan', 'body.parameters')
    const isPlain = typeof value === 'string' || typeof value === 'number'
    if (isPlain && holdsPossiblePan(`${value}`)) return refuse('parameter_pan', `body.parameters.${name}`)
  }
  return undefined
}

export function maskDigits(name: string): string {
  return name.replace(/\d/g, '*')
}
