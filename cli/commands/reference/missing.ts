// `tokenmill references missing`: which cards of a list have no token, and why.
import { findMissing, type MissingReference } from '../../../producers/operate/missing-references.ts'
import { readOnly } from '../../../producers/rows/only.ts'
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
}

const COLUMNS = ['card_id', 'why', 'at', 'reason', 'batch_id', 'line'] as const

export function run(terminal: Terminal, file: string, options: MissingOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { references: ids } = await readOnly(file, 'Give a text file with one id on each line.')
    const { store, ring } = await openVault(session)
    const { scope: tokenScope, provider, providerAccount = '' } = options
    if (!(await scopes.find(store, tokenScope))) throw new Stop(`there is no token scope ${tokenScope}`, EXIT.usage)
    const of = { tokenScope, provider, providerAccount }
    const missing = await findMissing(store, {
      ...{ ids, of },
      hashOf: cardId => ring.ownerHash(ownerKey({ ...of, customerId: '', cardId })),
      tell: line => say(terminal, line),
    })
    const records = missing.map(recordOf)
    const lines = records.map(record => COLUMNS.map(name => cell(record[name])).join(','))
    print(terminal, options, records, missing.length === 0 ? '' : [COLUMNS.join(','), ...lines].join('\n'))
    if (missing.length > 0) process.exitCode = EXIT.incomplete
  })
}

function recordOf({ cardId, why, at, reason, batchId, line }: MissingReference) {
  return {
    // A list may hold anything, which a terminal would obey.
    card_id: isPrintable(cardId) ? cardId : JSON.stringify(cardId),
    why,
    ...(at === undefined ? {} : { at: moment(at) }),
    ...(reason === undefined ? {} : { reason }),
    ...(batchId === undefined ? {} : { batch_id: batchId }),
    ...(line === undefined ? {} : { line }),
  } satisfies Partial<Record<(typeof COLUMNS)[number], string | number>>
}

function cell(value: string | number | undefined): string {
  return value === undefined ? '' : cellOf(String(value))
}
