// Examples of error answers. They are made by the code that makes real error answers, so they can't differ from them.
import { failureFor } from '../../../src/job/problem.ts'
import {
  type Decline,
  type DeclineStatus,
  type ErrorBody,
  errorBodyOf,
  failed,
  roleMissing,
  unauthenticated,
} from '../error-bodies.ts'
import type { ReasonExample, RefusalExample } from './notes.ts'

/** The timestamp of the examples. */
export const AT = Date.UTC(2026, 0, 31, 9, 30)

/** The error body that the path's service would send with `status`. */
export function refusalBody(
  path: string,
  status: number,
  example: RefusalExample | undefined,
  errorBodies: readonly ErrorBody[],
): object {
  if (example !== undefined && !isReason(example)) return example
  return errorBodyOf(path, errorBodies).render(exampleOf(status as DeclineStatus, example), AT)
}

function exampleOf(status: DeclineStatus, example: ReasonExample | undefined): Decline {
  if (example) return { ...failureFor(...example), status }
  switch (status) {
    case 400:
      return failureFor('field_unknown', 'query.colour')
    case 401:
      return unauthenticated()
    case 403:
      return roleMissing('params', 'TOKEN_READ')
    case 404:
      return failureFor('path_unknown', 'params')
    default:
      return { ...failed('NONE'), status }
  }
}

function isReason(example: RefusalExample): example is ReasonExample {
  return Array.isArray(example)
}
