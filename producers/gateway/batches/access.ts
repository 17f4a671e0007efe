// The roles that a batch and its rows need: what a worker will require of their chunks, by the same table.

import type { Refusal } from '../../../src/errors.ts'
import type { RecordKind, Role } from '../../../src/job/choices.ts'
import { CORE_KINDS } from '../../../src/job/core-kinds.ts'
import { lacks, mayNeedMore, recordsRefusal } from '../../../src/job/envelope/roles.ts'
import { jsonOf } from '../../rows/column-record.ts'
import type { Row } from '../../rows/rows.ts'
import type { Caller } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import type { BatchRequest } from './query.ts'

type Roles = Pick<Caller, 'roles'>
type Deps = Pick<GatewayDeps, 'catalogue'>
type Asked = Pick<BatchRequest, 'recordKind' | 'dryRun'> & Partial<Pick<BatchRequest, 'policy'>>

/** The first parameter for which the caller lacks a role; undefined if the caller may start and cancel such a batch. */
export function parameterLacking(
  { roles }: Roles,
  { recordKind, dryRun, policy }: Asked,
): { parameter: string; role: Role } | undefined {
  const request = { record_kind: recordKind, dry_run: dryRun, policy }
  const [need] = lacks(roles, CORE_KINDS['token-batch'], request)
  return need && { parameter: `query.${PARAMETERS[need.member ?? ''] ?? 'kind'}`, role: need.role }
}

/** Member of a chunk's request → parameter of the query. */
const PARAMETERS: Record<string, string> = { dry_run: 'dry_run' }

/** Whether single rows of this kind may need a role that the caller lacks. */
export function mustJudgeRows({ roles }: Roles, kind: RecordKind, { catalogue }: Deps): boolean {
  const entry = catalogue.find(kind)
  // Workers of a product without this kind refuse such records.
  return entry !== undefined && mayNeedMore(entry, roles)
}

/** The refusal of rows of which one needs a role that the caller lacks. */
export function rowsRefusal(
  { roles }: Roles,
  kind: RecordKind,
  rows: readonly Row[],
  { catalogue }: Deps,
): Refusal | undefined {
  const sent = rows.filter(({ rejected, skipped }) => rejected === undefined && skipped === undefined)
  const asked = sent.map(row => ({
    line: row.line,
    request: (JSON.parse(jsonOf(row)) as { request?: unknown }).request,
  }))
  return recordsRefusal(roles, catalogue.entry(kind), asked)
}
