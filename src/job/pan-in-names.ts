// Refuses a job whose jti or reference holds the number of the job's own card: both are stored, repeated in answers and
// written into files. For a card in clear this file finds the number; for an encrypted card the caller passes it.
// src/job/envelope/names.ts refuses names that could be any card number.
import { type Refusal, refuse } from '../errors.ts'
import { endsOf, formsOf, hasDigits, holdsPanLookalike, numbersIn, PAN_LENGTH } from '../token/pan.ts'
import { holdsPossiblePan } from '../token/possible-pan.ts'
import { maskDigits, type NameRule } from './envelope/names.ts'

export interface Names {
  jti?: string | undefined
  reference?: string | undefined
}

/** The fields in which a request may hold a card number in clear, whether or not the kind permits it. */
const PLACES = ['card', 'cardNumber', 'card_number', 'pan', 'id'] as const

export function clearNumbersOf(request: unknown): string[] {
  if (!isObject(request)) return []
  const values = PLACES.flatMap(place => {
    const value = request[place]
    return isObject(value) ? Object.values(value) : [value]
  })
  return values.flatMap(value => (typeof value === 'string' || typeof value === 'number' ? numbersIn(`${value}`) : []))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Whether the name could hold a card number: a fast check that rules out most names. */
export function couldHoldNumber(name: string | undefined): name is string {
  return name !== undefined && hasDigits(name, PAN_LENGTH.least)
}

function givesAway(name: string | undefined, numbers: readonly string[]): boolean {
  return couldHoldNumber(name) && numbers.flatMap(formsOf).some(number => holdsPanLookalike(name, endsOf(number)))
}

export function nameRefusal({ jti, reference }: Names, numbers: readonly string[]): Refusal | undefined {
  if (givesAway(jti, numbers)) return refuse('jti_pan', 'body.jti')
  return givesAway(reference, numbers) ? refuse('reference_pan', 'body.reference') : undefined
}

/**
 * The names without card numbers. A `jti` that holds one of `numbers` or, by the rule `checked`, a possible card number
 * loses its digits; the receipt's id still identifies the job. A `reference` that holds one of `numbers` is removed.
 */
export function withoutOwnPan<N extends Names>(names: N, numbers: readonly string[], rule: NameRule): N {
  const told = { ...names }
  const { jti } = told
  if (jti !== undefined && (givesAway(jti, numbers) || (rule === 'checked' && holdsPossiblePan(jti))))
    told.jti = maskDigits(jti)
  if (givesAway(told.reference, numbers)) delete told.reference
  return told
}
