// Refuses names that could be a card number. Senders choose these names and they are stored in clear: a job's jti, a
// batch's id, a report's parameters. src/job/pan-in-names.ts checks the same names, and references, for the number of
// the job's own card, whatever the client's rule.
import { type Refusal, refuse } from '../../errors.ts'
import { holdsPossiblePan } from '../../token/possible-pan.ts'

/**
 * `numeric`: the client uses long numbers as names, some of which look like card numbers by chance, so none of its
 * names is refused here.
 */
export const NAME_RULES = ['checked', 'numeric'] as const
export type NameRule = (typeof NAME_RULES)[number]

interface Named {
  jti?: string
  request: Record<string, unknown>
}

/**
 * The first refusal; undefined if every name is allowed. The batch's id is checked before the jti, which may contain
 * it.
 */
export function panNameRefusal({ jti, request }: Named, rule: NameRule): Refusal | undefined {
  if (rule === 'numeric') return undefined
  const { batch_id: batchId, parameters } = request
  if (typeof batchId === 'string' && holdsPossiblePan(batchId)) return refuse('batch_id_pan', 'body.request.batch_id')
  const parameter = parameterRefusal(parameters)
  if (parameter) return parameter
  return jti !== undefined && holdsPossiblePan(jti) ? refuse('jti_pan', 'body.jti') : undefined
}

/** Checks a report's parameters: their names, texts and whole numbers. */
function parameterRefusal(parameters: unknown): Refusal | undefined {
  for (const [name, value] of Object.entries(parameters ?? {})) {
    // The name itself could be the card number, so the refusal doesn't repeat it.
    if (holdsPossiblePan(name)) return refuse('parameter_pan', 'body.parameters')
    const isPlain = typeof value === 'string' || typeof value === 'number'
    if (isPlain && holdsPossiblePan(`${value}`)) return refuse('parameter_pan', `body.parameters.${name}`)
  }
  return undefined
}

export function maskDigits(name: string): string {
  return name.replace(/\d/g, '*')
}
