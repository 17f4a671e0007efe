// Whether an audit row says what its proof asks for. Many logins may write a row and read the proofs of others, so a proof says
// nothing about a row that names another subject, reason or fact.
import { isDeepStrictEqual } from 'node:util'
import { type Act, type ActName, FailedParameters, failedSubject } from '../job/system/act.ts'
import type { AuditRow } from '../store/access/audits.ts'

/** `asked`: exactly this; `one_of_many`: on all copies that a filter found, and the signature names none of them. */
export type Told = 'asked' | 'one_of_many' | { differs: string }

type Row = Pick<AuditRow, 'subject' | 'outcome' | 'detail'>
type Facts = Record<string, unknown>

/** Acts whose rows keep no reason. */
const REASONLESS: ReadonlySet<ActName> = new Set<ActName>([
  ...(['person.enrol', 'passkey.add', 'passkey.remove', 'identity.connect', 'identity.disconnect'] as const),
])

export function toldBy(row: Row, request: Act): Told {
  const reason = REASONLESS.has(request.act) ? null : request.reason
  if ((row.detail['reason'] ?? null) !== reason) return { differs: 'reason' }
  if (request.act === 'failed.retry' || request.act === 'failed.discard') return onFailed(row, request)
  const subject = request.act === 'person.enrol' ? request.person_id : request.subject
  if (row.subject !== subject) return { differs: 'subject' }
  return differing(row, factsOf(request)) ?? 'asked'
}

/** What the row's detail has of the request: a row that is done has all of it, another one some. */
function factsOf({ act, subject, parameters }: Act): Facts {
  switch (act) {
    case 'batch.pause':
    case 'batch.resume':
    case 'batch.cancel':
    case 'batch.note':
      return { client_id: parameters['client_id'] }
    case 'schedule.run':
      return { date: parameters['date'] }
    case 'person.enrol':
      return { invite_id: subject }
    case 'passkey.add':
      return { added: parameters['credential_id'] }
    case 'passkey.remove':
      return { removed: parameters['credential_id'] }
    case 'identity.connect':
    case 'identity.disconnect':
      return { issuer: parameters['issuer'], sub: parameters['subject'] }
    case 'person.invite':
    case 'person.change':
      return { roles: parameters['roles'], entities: parameters['entities'] }
    default:
      return {}
  }
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
