// Every text on the console's pages that somebody else chose, each with a place to put another in: what senders name, what people
// write, what a provider, a host or a worker says.
import { failCopy } from '../../../workers/act/failed-copies.ts'
import type { ConsoleBundle } from '../bundle.ts'
import type { Names } from '../routes/calls.ts'

/** Breaks out of a text, of either quote and of a comment, and says by `mark` which one it is. */
export const hostile = (mark: number) => `-->"'><img src=x onerror=pwned()><script>pwned()</script><b id=mark${mark}x`

/** `$1`: the text. Where a column has JSON, a member. */
const SET: Readonly<Record<string, (names: Names) => string>> = {
  'the id of a batch': ({ batch }) => `update tokenmill.batch set batch_id = $1 where batch_no = ${batch}`,
  'the name of a file': ({ batch }) => `update tokenmill.batch set source_name = $1 where batch_no = ${batch}`,
  'a reason for rows that were refused': ({ batch }) =>
    `update tokenmill.batch set reasons = jsonb_build_object('REJECTED', jsonb_build_object($1::text, 3)) where batch_no = ${batch}`,
  'the name of a client': ({ client }) => `update tokenmill.client set name = $1 where client_id = '${client}'`,
  'a note on a batch': ({ batch }) =>
    `insert into tokenmill.audit (actor, action, subject, detail) select 'cli:root', 'batch.note', batch_id, jsonb_build_object('client_id', client_id, 'reason', $1::text) from tokenmill.batch where batch_no = ${batch}`,
  'who acted': () => `insert into tokenmill.audit (actor, action, subject) values ('cli:' || $1, 'client.add', 'x')`,
  'the subject of an act': () =>
    `insert into tokenmill.audit (actor, action, subject) values ('cli:root', 'client.add', $1)`,
  'the host of an act': ({ audit }) => `update tokenmill.audit set host = $1 where audit_id = ${audit}`,
  'the reason of an act': ({ audit }) =>
    `update tokenmill.audit set detail = detail || jsonb_build_object('reason', $1::text) where audit_id = ${audit}`,
  'a member of an act’s detail': ({ audit }) =>
    `update tokenmill.audit set detail = detail || jsonb_build_object($1::text, 'x') where audit_id = ${audit}`,
  'a parameter of a report': ({ schedule }) =>
    `update tokenmill.schedule set parameters = jsonb_build_object('batchId', $1::text) where schedule_id = '${schedule}'`,
  'why a run failed': ({ schedule }) =>
    `update tokenmill.schedule_run set reason = $1 where schedule_id = '${schedule}'`,
  'the name of a person': ({ person }) => `update tokenmill.person set name = $1 where person_id = '${person}'`,
  'the name in an invite': ({ invite }) => `update tokenmill.invite set name = $1 where invite_id = '${invite}'`,
  'the account of a person': ({ identity }) =>
    `update tokenmill.person_identity set subject = $1 where identity_id = '${identity}'`,
  'an account that a provider names': () => `update tokenmill.openid_flow set subject = $1`,
  'the name of a wall display': () => `update tokenmill.display set name = $1 where name = 'room 2'`,
  'the reason of an act that was sent': ({ act }) =>
    `update tokenmill.pending_act set request = request || jsonb_build_object('reason', $1::text) where nonce = '${act}'`,
  'what a worker says of an act': ({ act }) =>
    `update tokenmill.pending_act set verdict = jsonb_build_object('done', false, 'reason', 'x', 'text', $1::text) where nonce = '${act}'`,
  'the reference of a job': ({ job }) => `update tokenmill.receipt set reference = $1 where receipt_id = '${job}'`,
  'the id of a job': ({ job }) => `update tokenmill.receipt set jti = $1 where receipt_id = '${job}'`,
  'the alias of a capture key': () => `update tokenmill.capture_key set alias = $1 where alias = 'capture-2026'`,
  'the name of a host': () => `update tokenmill.process set host = $1 where role = 'bulk'`,
  'the release of a process': () => `update tokenmill.process set version = $1 where role = 'scheduler'`,
  'what a check says': () => `update tokenmill.watch_check set says = $1 where name = 'failed jobs'`,
}

/** Texts of a copy in the failed set. */
const COPIED = ['the reference of a failed job', 'the id of a failed job'] as const

/** Puts each text where it belongs. Returns them by their marks. */
export async function plant(
  { rows, installation }: ConsoleBundle,
  names: Names,
): Promise<{ planted: string[]; copy: string }> {
  const planted = [...Object.keys(SET), ...COPIED]
  for (const [mark, [what, set]] of Object.entries(SET).entries())
    await rows(set(names), [hostile(mark)]).catch((error: Error) => {
      throw new Error(`${what}: ${error.message}`)
    })
  const [reference = '', jti = ''] = COPIED.map(what => hostile(planted.indexOf(what)))
  const { credentials, queues } = installation
  const { id } = await failCopy(queues, { credentials, reference, copy: { jti } })
  return { planted, copy: id }
}
