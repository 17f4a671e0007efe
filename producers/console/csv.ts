// Sends a list as CSV. A worker first writes into the audit who takes it, because the console can't; without its answer there is
// no CSV. Then pages of the list are read as fast as the browser takes them, and no connection is held between two pages. None is
// sent once the session is over, or its person sees something else.
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { cellOf } from '../../src/csv-text.ts'
import type { ExportParameters } from '../../src/job/system/list-exports.ts'
import { describeError } from '../../src/logger.ts'
import * as sessions from '../../src/store/console/sessions.ts'
import type { ConsoleDeps } from './deps.ts'
import { refusedPage, sendPage } from './server/page.ts'

/** How many rows a file has at most, without its head. */
export const CSV_ROWS_MAX = 100_000
/** How long the audit has, in seconds. */
const LASTS_S = 8

export interface CsvList {
  /** The name of the file, without its ending. It holds only words and numbers of tokenmill. */
  name: string
  subject: string
  parameters: ExportParameters
  head: readonly string[]
  /** The rows, page by page. */
  pages: () => AsyncIterable<readonly (readonly (string | number | null)[])[]>
}

export async function sendCsv(
  deps: ConsoleDeps,
  session: sessions.LiveSession,
  reply: FastifyReply,
  list: CsvList,
): Promise<FastifyReply> {
  const { name, subject, parameters } = list
  const verdict = await deps.sendAct({
    act: 'list.exported',
    subject,
    parameters,
    seen: null,
    reason: null,
    person_id: session.personId,
    nonce: randomBytes(16).toString('base64url'),
    expires_at: Math.floor(deps.clock() / 1000) + LASTS_S,
    proof: null,
  })
  if (!verdict.done) {
    const why =
      verdict.done === null || verdict.reason === 'not_sent'
        ? 'no worker answered'
        : `a worker refused it (${verdict.reason})`
    const text = `Nothing was exported: the audit must say first who takes a list, and ${why}. tokenmill status says more.`
    return sendPage(reply, 503, refusedPage(deps, text, session, 'Not exported'))
  }
  const body: Readable = Readable.from(linesOf(list, deps, { session, hasLeft: () => body.destroyed }), {
    objectMode: false,
  })
  return reply
    .type('text/csv; charset=utf-8; header=present')
    .header('content-disposition', `attachment; filename="${name}.csv"`)
    .send(body)
}

/**
 * RFC 4180. If there are more rows than may be, the last line says so. A list that breaks off ends the connection, so that nobody
 * takes it for whole. Pages may have no rows for long, so after each it is asked whether the browser has left.
 */
async function* linesOf(
  { head, pages }: CsvList,
  deps: Pick<ConsoleDeps, 'store' | 'isEmbedded' | 'log'>,
  { session, hasLeft }: { session: sessions.LiveSession; hasLeft: () => boolean },
): AsyncGenerator<string> {
  yield `${head.join(',')}\r\n`
  let sent = 0
  try {
    for await (const page of pages()) {
      if (hasLeft()) return
      if (!(await isLive(session, deps))) throw new Error('the session is over, or its person sees something else')
      const taken = page.slice(0, CSV_ROWS_MAX - sent)
      sent += taken.length
      if (taken.length > 0) yield taken.map(row => `${row.map(textOf).join(',')}\r\n`).join('')
      if (taken.length < page.length) {
        yield `${cellOf(`There are more than ${CSV_ROWS_MAX} rows; these are the first.`)}\r\n`
        return
      }
    }
  } catch (error) {
    deps.log.warn({ error: describeError(error) }, 'a CSV broke off')
    throw error
  }
}

/** Whether the session still is as it was when the list was asked for. */
async function isLive(
  { sessionHash, roles, entities }: sessions.LiveSession,
  { store, isEmbedded }: Pick<ConsoleDeps, 'store' | 'isEmbedded'>,
): Promise<boolean> {
  const [live] = await sessions.listLive(store, [sessionHash])
  if (live === undefined || (live.isLocal && !isEmbedded)) return false
  return JSON.stringify([live.roles, live.entities]) === JSON.stringify([roles, entities])
}

/** A number is never taken for a formula; every text may be. */
function textOf(value: string | number | null): string {
  if (value === null) return ''
  return typeof value === 'number' ? String(value) : cellOf(value)
}
