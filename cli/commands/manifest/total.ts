// `tokenmill manifest total BATCH…`: the vault's half of the total that both sides of a migration compute.
import { computeTotal } from '../../../producers/pack/total.ts'
import { systemClock } from '../../../src/clock.ts'
import type { JsonOption } from '../../command.ts'
import { withSession } from '../../open/open.ts'
import { openTotal, tellChunks } from '../../process/total.ts'
import { facts, print, say, type Terminal } from '../../terminal.ts'
import { findClient } from '../client/find-client.ts'

interface Options extends JsonOption {
  migration: string
  client?: string
}

/** Exceptions beyond these are only counted on a terminal; `--json` has all. */
const SHOWN_MAX = 20

export function total(terminal: Terminal, batches: string[], options: Options): Promise<void> {
  const { migration, client } = options
  return withSession(terminal, async session => {
    const deps = await openTotal(session)
    const clientId = client === undefined ? undefined : (await findClient(deps.store, client)).clientId
    const onProgress = tellChunks(terminal, systemClock)
    const found = await computeTotal(deps, { migration, batches, clientId, onProgress })
    const { rows, sha256, by_brand: brands, exceptions } = found
    const text = facts({
      migration,
      rows: String(rows),
      sha256,
      ...Object.fromEntries(Object.entries(brands).map(([brand, sum]) => [`  ${brand}`, `${sum.rows} ${sum.sha256}`])),
      'left out': String(exceptions.length),
    })
    print(terminal, options, found, text)
    if (options.json) return
    for (const { batch_id, line, reference, reason } of exceptions.slice(0, SHOWN_MAX))
      say(terminal, `left out: ${batch_id} line ${line}${reference === null ? '' : `, ${reference}`}: ${reason}`)
    const more = exceptions.length - SHOWN_MAX
    if (more > 0) say(terminal, `left out: ${more} more; --json lists them all`)
  })
}
