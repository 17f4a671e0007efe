// Names that senders choose and that are stored in clear as they are: a job's jti, a batch's id, a report's parameters.
// None may be a possible card number. Whether a name holds the job's own card, whatever the client's rule, is pan-in-names.ts'
// question.
import { type Refusal, refuse } from '../../errors.ts'
import { holdsPossiblePan } from '../../token/possible-pan.ts'

/** `numeric`: the client names its work by long numbers, some of which look like a card's by chance; none is refused for that. */
export const NAME_RULES = ['checked', 'numeric'] as const
export type NameRule = (typeof NAME_RULES)[number]

interface Named {
  jti?: string
  request: Record<string, unknown>
}

/** The first that is refused; a batch's id before the jti, which is made of it. */
export function panNameRefusal({ jti, request }: Named, rule: NameRule): Refusal | undefined {
  if (rule === 'numeric') return undefined
  const { batch_id: batchId, parameters } = request
  if (typeof batchId === 'string' && holdsPossiblePan(batchId)) return refuse('batch_id_pan', 'body.request.batch_id')
  const parameter = parameterRefusal(parameters)
  if (parameter) return parameter
  return jti !== undefined && holdsPossiblePan(jti) ? refuse('jti_pan', 'body.jti') : undefined
}

/** Of a report's parameters: texts, whole numbers and their names. */
function parameterRefusal(parameters: unknown): Refusal | undefined {
  for (const [name, value] of Object.entries(parameters ?? {})) {
    // A name that would give the number away isn't told either.
    if (holdsPossiblePan(name)) return refuse('parameter_pan', 'body.parameters')
    const isPlain = typeof value === 'string' || typeof value === 'number'
    if (isPlain && holdsPossiblePan(`${value}`)) return refuse('parameter_pan', `body.parameters.${name}`)
  }
  return undefined
}

export function maskDigits(name: string): string {
  return name.replace(/\d/g, '*')
}
