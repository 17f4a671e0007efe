// Asks to release an owner of a token. The worker decides what happens to a token that has no owner left.
import type { z } from 'zod'
import type { Refusal } from '../src/errors.ts'
import { Reference } from '../src/job/reference.ts'
import { type Ask, check } from './ask.ts'

export type ReferenceRequest = z.input<typeof Reference>

export function reference(request: ReferenceRequest): Ask<'reference'> | Refusal {
  return check('reference', Reference, request)
}
