// The failed set as CSV, with the filter of the page: what its person may see, newest first. The columns are named as in
// `failed list --json`. Pages of the console look between two pages of a file.
import { mayDo } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import { sendCsv } from '../csv.ts'
import type { ConsoleDeps } from '../deps.ts'
import { sessionOf } from '../server/guard.ts'
import { refuse } from '../server/page.ts'
import { readFilter, sinceOf } from './filter.ts'
import { copyFilterOf } from './list.ts'
import type { From } from './place.ts'
import { type ListedCopy, look } from './set.ts'
import { couldBeCard } from './text.ts'

const PAGE = 500
const BOUND = { ms: 500, least: 20, most: 1_000 } as const
/** How many files are sent at once: reading failed jobs is expensive. */
const SENT_MOST = 2
const BUSY = 'Other files of failed jobs are being sent. Wait until they are, then try again.'
const HEAD = [
  ...['id', 'kind', 'code', 'client_id', 'client_name', 'attempt', 'failed_at', 'can_be_retried', 'why_not', 'job_id'],
  ...['jti', 'reference'],
]

type Cells = readonly (string | number | null)[]

export function failedCsvRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const sending = new Set<string>()

  app.post('/failed/csv', async (request, reply) => {
    const session = sessionOf(request)
    const { body, id } = request
    const isObject = typeof body === 'object' && body !== null
    const filter = readFilter(deps.catalogue, isObject ? (body as Record<string, unknown>) : {})
    const { kind, code, clientId } = filter
    const now = deps.clock()
    const since = sinceOf(filter, now)
    if (sending.size >= SENT_MOST) return refuse(deps, request, reply, { status: 429, text: BUSY })
    sending.add(id)
    reply.raw.on('close', () => sending.delete(id))
    const given = Object.entries({ kind, code, client_id: clientId, since }).filter(([, value]) => value !== undefined)
    const showsReference = mayDo('failed.retry', session)
    const asked = copyFilterOf(filter, now)
    async function* pages(): AsyncGenerator<readonly Cells[]> {
      for (let from: From | undefined; ; ) {
        const { listed, next } = await look(deps, session, asked, { from, limit: PAGE, bound: BOUND })
        yield listed.map(copy => cellsOf(copy, showsReference))
        from = next
        if (from === undefined) return
      }
    }
    return sendCsv(deps, session, reply, {
      name: 'failed',
      subject: 'failed',
      head: HEAD,
      pages,
      parameters: { list: 'failed', ...Object.fromEntries(given) },
    })
  })
}

function cellsOf(copy: ListedCopy, showsReference: boolean): Cells {
  const text = (value: string | undefined) => (value === undefined || couldBeCard(value) ? null : value)
  const { id, kind, code, clientId, clientName, attempt, failedAt, whyNot, jobId, jti, reference } = copy
  return [
    ...[id, kind, code, clientId ?? null, clientName ?? null, attempt, new Date(failedAt).toISOString()],
    ...[whyNot === undefined ? 'true' : 'false', whyNot ?? null, jobId, text(jti)],
    showsReference ? text(reference) : null,
  ]
}
