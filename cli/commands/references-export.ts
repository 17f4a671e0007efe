// `tokenmill references export`: writes the owners of a scope's tokens, and the data that the next provider needs for
// their cards. References are read in pages, so that memory doesn't grow with the scope.
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { cannotWrite } from '../../producers/rows/atomic-file.ts'
import { type HandsOut, withAccess } from '../../src/acts/access.ts'
import { systemClock } from '../../src/clock.ts'
import { cellOf } from '../../src/csv-text.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import type { Db } from '../../src/store/pool.ts'
import type { ShownReference } from '../../src/store/reference/reference-views.ts'
import { pagesOf } from '../../src/store/reference/reference-views.ts'
import { shownReuseToken } from '../../src/token/render.ts'
import { EXIT, Stop } from '../exit.ts'
import { openCommandStore, withSession } from '../open/open.ts'
import { actor, dataOutput, say, type Terminal } from '../terminal.ts'

interface ExportOptions {
  scope: string
  format: 'csv' | 'ndjson'
  out?: string
}

const SAY_EVERY_MS = 10_000

export function run(terminal: Terminal, { scope, format, out }: ExportOptions): Promise<void> {
  return withSession(terminal, async session => {
    const target = out ?? dataOutput(terminal)
    const { store } = await openCommandStore(session)
    if (!(await scopes.find(store, scope))) throw new Stop(`there is no token scope ${scope}`, EXIT.usage)
    let rows = 0
    let saidAt = systemClock()
    const tell = (count: number) => {
      rows += count
      if (systemClock() - saidAt < SAY_EVERY_MS) return
      saidAt = systemClock()
      say(terminal, `${rows} references ...`)
    }
    const access = { actor: actor(), action: 'references.export', subject: scope, detail: { format } }
    const { auditUrl } = session.config
    await withAccess(store, access, { waits: auditUrl !== undefined }, async handsOut => {
      const lines = linesOf({ store, scope, handsOut }, format, tell)
      if (typeof target === 'string') await writeFile(target, lines)
      else await pipeline(lines, target, { end: false })
    })
    say(terminal, `${rows} references${out === undefined ? '' : ` are in ${out}`}`)
  })
}

interface Exported {
  store: Db
  scope: string
  handsOut: HandsOut
}

async function* linesOf(
  { store, scope, handsOut }: Exported,
  format: ExportOptions['format'],
  tell: (count: number) => void,
): AsyncGenerator<string> {
  if (format === 'csv') yield `${COLUMNS.join(',')}\n`
  for await (const page of pagesOf(store, { tokenScope: scope })) {
    await handsOut(page.map(({ token }) => token.tokenId))
    const records = page.map(recordOf)
    tell(records.length)
    yield records
      .map(record =>
        format === 'csv' ? COLUMNS.map(name => cell(name, record[name])).join(',') : JSON.stringify(record),
      )
      .join('\n')
      .concat('\n')
  }
}

const COLUMNS = [
  'provider',
  'provider_account',
  'customer_id',
  'card_id',
  'reuse_token',
  'network_transaction_id',
  'transaction_link_id',
  'is_default',
] as const

/** What the source didn't give is left out. */
function recordOf(reference: ShownReference): Partial<Record<(typeof COLUMNS)[number], string | boolean>> {
  const { provider, providerAccount, customerId, cardId, onFile, token } = reference
  const { network_transaction_id, transaction_link_id, is_default } = onFile
  const reuseToken = shownReuseToken(token)
  return {
    provider,
    ...(providerAccount === '' ? {} : { provider_account: providerAccount }),
    ...(customerId === '' ? {} : { customer_id: customerId }),
    card_id: cardId,
    ...(reuseToken === undefined ? {} : { reuse_token: reuseToken }),
    ...(network_transaction_id === undefined ? {} : { network_transaction_id }),
    ...(transaction_link_id === undefined ? {} : { transaction_link_id }),
    ...(is_default === undefined ? {} : { is_default }),
  }
}

/** The ids that the next provider takes over by the character. */
const EXACT: readonly string[] = ['network_transaction_id', 'transaction_link_id']
const HARMLESS = /^[A-Za-z0-9_-]*$/

/**
 * One in 64 transaction link ids begins with a dash; a guard would make another id of it. Letters, digits, `_` and `-`
 * can't call anything in a spreadsheet.
 */
function cell(name: string, value: string | boolean | undefined): string {
  const text = value === undefined ? '' : String(value)
  return EXACT.includes(name) && HARMLESS.test(text) ? text : cellOf(text)
}

/** Whole or not at all. */
async function writeFile(path: string, lines: AsyncIterable<string>): Promise<void> {
  const beside = `${path}.${process.pid}.new`
  const file: Writable = createWriteStream(beside, { mode: 0o600, flush: true })
  let failure: unknown
  file.on('error', error => {
    failure = error
  })
  try {
    await pipeline(lines, file)
    await rename(beside, path).catch(error => {
      failure = error
      throw error
    })
  } catch (error) {
    await rm(beside, { force: true })
    throw error === failure ? cannotWrite(path, error) : error
  }
}
