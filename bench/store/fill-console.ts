// Fills a store with what the pages of the console read besides batches and receipts: points of charts, minutes of work, and the
// audit. The audit's rows have numbers but no hashes that anybody could verify, so this store is for measuring alone.
import { CATALOGUE } from '../../src/job/composition.ts'
import type { Run } from './fill-jobs.ts'

const DAYS = 8

/** `audits`: how many rows the audit gets. */
export async function fillConsole(run: Run, { audits }: { audits: number }): Promise<void> {
  // Most batches take seconds. One in 100 took so long that its chart is full.
  await run(`insert into tokenmill.batch_sample (batch_no, at, rows_done, rows_refused, state)
select b.batch_no, b.created_at + n * interval '1 minute', b.rows_done * n / most, 10 * n / most, 'RUNNING'
from (select batch_no, created_at, rows_done, case when batch_no % 100 = 0 then 240 else 3 end as most from tokenmill.batch) as b
cross join lateral generate_series(1, most) as n on conflict do nothing`)
  await run(
    `insert into tokenmill.work_minute (minute, kind, done, refused, failed, wait_p95_ms)
select date_trunc('minute', now()) - n * interval '1 minute', kind, 1000 + n % 100, n % 10, n % 3, 250
from generate_series(1, ${DAYS * 1_440}) as n cross join unnest($1::text[]) as kind on conflict do nothing`,
    [CATALOGUE.kinds],
  )
  await run(`insert into tokenmill.watch_minute (minute, interactive_ms, failed, outbox_ms, outbox_last_ms)
select date_trunc('minute', now()) - n * interval '1 minute', n % 900, n % 7, n % 400, n % 300 from generate_series(1, ${DAYS * 1_440}) as n
on conflict do nothing`)
  await run(
    `insert into tokenmill.audit (at, actor, action, subject, detail, outcome, entity_id, seq, hash, mac, key_version)
select now() - ($1::int - n) * interval '20 seconds', case when n % 3 = 0 then 'person:' || $2 else 'machine:operator@host' end,
  (array['batch.pause', 'batch.resume', 'failed.retry', 'client.add', 'key.rotate', 'list.exported'])[1 + n % 6], 'm-' || md5(n::text),
  case when n % 6 < 2 then jsonb_build_object('reason', 'ticket ' || n, 'entity_id', b.entity_id) else jsonb_build_object('reason', 'ticket ' || n) end,
  case when n % 50 = 0 then 'refused' else 'done' end, case when n % 6 < 2 then b.entity_id end, c.seq + n, sha256(n::text::bytea), sha256(n::text::bytea), 1
from generate_series(1, $1::int) as n cross join (select seq from tokenmill.audit_chain) as c
left join tokenmill.batch as b on b.batch_no = 1 + n % (select max(batch_no) from tokenmill.batch)`,
    [audits, '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'],
  )
  await run(`update tokenmill.audit_chain set seq = top.seq, hash = top.hash, cut_seq = top.seq, cut_hash = top.hash
from (select seq, hash from tokenmill.audit where seq is not null order by seq desc limit 1) as top`)
  for (const table of ['batch_sample', 'work_minute', 'watch_minute', 'audit', 'token', 'card'])
    await run(`vacuum (analyze) tokenmill.${table}`)
}
