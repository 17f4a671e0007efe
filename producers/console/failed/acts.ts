// What people may do to failed jobs, as words. A worker decides it again by its own rules.
import type { ActWords } from '../acts/subject.ts'

export const FAILED_ACTS = {
  retry: { act: 'failed.retry', verb: 'Retry', roles: ['OPERATOR', 'ADMIN'], isFinal: false },
  discard: { act: 'failed.discard', verb: 'Discard', roles: ['ADMIN'], isFinal: true },
} as const satisfies Record<string, ActWords>

export type FailedActName = keyof typeof FAILED_ACTS

export function isFailedAct(name: string): name is FailedActName {
  return Object.hasOwn(FAILED_ACTS, name)
}
