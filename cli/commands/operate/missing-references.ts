// `tokenmill references missing`: which cards of a list have no token, and why.
import { findMissing, type MissingReference } from '../../../producers/operate/missing-references.ts'
import { readReferences } from '../../../producers/rows/only/read.ts'
import { readEnds } from '../../../producers/rows/outcome/read-results.ts'
import { cellOf } from '../../../src/csv-text.ts'
import { isPrintable } from '../../../src/job/envelope/text.ts'
import * as scopes from '../../../src/store/access/scopes.ts'
import { ownerKey } from '../../../src/token/on-file.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { openVault, withSession } from '../../open/open.ts'
import { moment, print, say, type Terminal } from '../../terminal.ts'

interface MissingOptions extends JsonOption {
  scope: string
  provider: string
  providerAccount?: string
  results?: string[]
}

const COLUMNS = ['card_id', 'why', 'at', 'reason', 'batch_id', 'line', 'file'] as const

export function run(terminal: Terminal, file: string, options: MissingOptions): Promise<void> {
  return withSession(terminal, async session => {
    const ids = await readReferences(file)
    const { store, ring } = await openVault(session)
    const { scope: tokenScope, provider, providerAccount = '', results = [] } = options
    if (ids.size === 0) throw new Stop(`${file} lists no ids of cards`, EXIT.usage)
    if (!(await scopes.find(store, tokenScope))) throw new Stop(`there is no token scope ${tokenScope}`, EXIT.usage)
    const of = { tokenScope, provider, providerAccount }
    const missing = await findMissing(store, {
      ids,
      of,
      hashesOf: cardId => ring.ownerHashes(ownerKey({ ...of, customerId: '', cardId })),
      versions: ring.ownerVersions(),
      written: cardIds => readEnds(results, cardIds),
      tell: line => say(terminal, line),
    })
    const records = missing.map(recordOf)
    const lines = records.map(record => COLUMNS.map(name => cell(record[name])).join(','))
    print(terminal, options, records, missing.length === 0 ? '' : [COLUMNS.join(','), ...lines])
    if (missing.length > 0) process.exitCode = EXIT.incomplete
  })
}

function recordOf({ cardId, why, at, reason, batchId, line, file }: MissingReference) {
  return {
    // A list may hold control characters, which a terminal would obey.
    card_id: isPrintable(cardId) ? cardId : JSON.stringify(cardId),
    why,
    ...(at === undefined ? {} : { at: moment(at) }),
    ...(reason === undefined ? {} : { reason }),
    ...(batchId === undefined ? {} : { batch_id: batchId }),
    ...(line === undefined ? {} : { line }),
    ...(file === undefined ? {} : { file }),
  } satisfies Partial<Record<(typeof COLUMNS)[number], string | number>>
}

function cell(value: string | number | undefined): string {
  return value === undefined ? '' : cellOf(String(value))
}
