// Whether an audit row says what its proof asks for. Many logins may write a row and read the proofs of others, so a proof says
// nothing about a row that names another subject, reason or fact.
import { isDeepStrictEqual } from 'node:util'
import { type Act, rowOf } from '../job/system/act.ts'
import { FailedParameters, failedSubject } from '../job/system/failed-act.ts'
import type { AuditRow } from '../store/access/audits.ts'

/** `asked`: exactly this; `one_of_many`: on all copies that a filter found, and the signature names none of them. */
export type Told = 'asked' | 'one_of_many' | { differs: string }

type Row = Pick<AuditRow, 'subject' | 'outcome' | 'detail'>
type Facts = Record<string, unknown>

export function toldBy(row: Row, request: Act): Told {
  const { on, reach, facts } = rowOf(request.act)
  const reason = reach === 'own' ? null : request.reason
  if ((row.detail['reason'] ?? null) !== reason) return { differs: 'reason' }
  if (on === 'failed') return onFailed(row, request)
  const subject = on === 'invited' ? request.person_id : request.subject
  if (row.subject !== subject) return { differs: 'subject' }
  return differing(row, facts(request)) ?? 'asked'
}

function differing({ outcome, detail }: Omit<Row, 'subject'>, facts: Facts): { differs: string } | undefined {
  const isWrong = ([name, value]: [string, unknown]) =>
    (outcome === 'done' || Object.hasOwn(detail, name)) && !isDeepStrictEqual(detail[name], value)
  const found = Object.entries(facts).find(isWrong)
  return found && { differs: found[0] }
}

/** An act on one copy, the row of one on many, or the row of one copy of these. */
function onFailed(row: Row, request: Act): Told {
  const parameters = FailedParameters.parse(request.parameters)
  const { kind } = parameters
  const isMany = 'filter' in parameters || 'ids' in parameters
  if (row.subject === request.subject) {
    const selection =
      'ids' in parameters
        ? { ticked: parameters.ids.length }
        : 'filter' in parameters
          ? { filter: parameters.filter, count: parameters.count, up_to: parameters.up_to }
          : {}
    return differing(row, { kind, ...selection, ...(isMany && { ids_sha256: request.seen }) }) ?? 'asked'
  }
  if (!isMany || request.subject !== failedSubject(parameters)) return { differs: 'subject' }
  if ('ids' in parameters)
    return parameters.ids.includes(row.subject) ? (differing(row, { kind }) ?? 'asked') : { differs: 'subject' }
  const { since: _, ...filter } = parameters.filter
  return differing(row, { kind, ...filter }) ?? 'one_of_many'
}
