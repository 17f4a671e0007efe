// `manifest-total`: one part of the total of a migration. A part digests the rows of some chunks before the line's
// transaction, which stores the digests; the last part merges them. If the job of a part is worked twice, the part
// counts once.
import { createSecretKey, type KeyObject } from 'node:crypto'
import { assert } from '../src/errors.ts'
import type { ManifestTotal, PartOutcome, TotalSums } from '../src/job/system/manifest-total.ts'
import * as audits from '../src/store/access/audits.ts'
import type { Db } from '../src/store/pool.ts'
import * as digestRuns from '../src/store/total/digest-runs.ts'
import * as totalKeys from '../src/store/total/total-keys.ts'
import type { Part } from '../src/store/total/total-parts.ts'
import * as parts from '../src/store/total/total-parts.ts'
import type { Total } from '../src/store/total/totals.ts'
import * as totals from '../src/store/total/totals.ts'
import type { Deps } from './deps.ts'
import { type DigestedRows, digestRows } from './total/digest-rows.ts'
import { mergeRuns } from './total/merge-runs.ts'
import type { Handler } from './work.ts'

type Prepared = { gone: true } | { refused: string; total: Total } | Due | (Due & Reached)

interface Due {
  total: Total
  part: Part
}

type Reached = { digested: DigestedRows } | { merged: TotalSums }

export const manifestTotal: Handler<ManifestTotal, undefined, Prepared> = {
  async prepare({ request }, _opened, { store }) {
    const total = await totals.find(store, request.total_id)
    const part = await parts.findUndone(store, request.total_id, request.part)
    if (!total || !part || total.refused !== null) return { gone: true }
    return { total, part }
  },

  async reach(_work, prepared, deps) {
    if (!('part' in prepared)) return prepared
    const { total, part } = prepared
    const { batchNo } = part
    if (batchNo === null) return { ...prepared, merged: await mergeRuns(deps.store, total.totalId) }
    const key = await openKey(total.migration, deps)
    if (!key) return { refused: 'signed_off', total }
    return { ...prepared, digested: await digestRows({ ...part, batchNo }, key, deps) }
  },

  decide: async (_work, prepared) => ({
    async save(db) {
      const outcome = await save(db, prepared)
      return { code: 200, outcome, tokenId: null, record: { part_outcome: outcome } }
    },
  }),
}

async function openKey(migration: string, { store, ring }: Deps): Promise<KeyObject | undefined> {
  const found = await totalKeys.find(store, migration)
  if (!found?.key) return undefined
  const raw = ring.openTotalKey(found.key.sealed, found.key.keyVersion, migration).reveal()
  const key = createSecretKey(raw)
  raw.fill(0)
  return key
}

async function save(db: Db, prepared: Prepared): Promise<PartOutcome> {
  if ('gone' in prepared) return 'GONE'
  if ('refused' in prepared) return refuse(db, prepared)
  const { total, part } = prepared
  // Sign-off waits for this, or this for sign-off: no digest is stored after the key is destroyed.
  const key = await totalKeys.hold(db, total.migration, 'share')
  if (!key?.key) return refuse(db, { refused: 'signed_off', total })
  if ('merged' in prepared) {
    const { merged } = prepared
    const isDone = await parts.finish(db, part, [])
    return isDone && (await end(db, total, merged)) ? 'MERGED' : 'GONE'
  }
  assert('digested' in prepared, 'a part is digested before it is remembered')
  const { runs, leftOut } = prepared.digested
  if (!(await parts.finish(db, part, leftOut))) return 'GONE'
  await digestRuns.insertAll(db, part.totalId, part.part, runs)
  return 'DIGESTED'
}

async function refuse(db: Db, { total, refused }: { total: Total; refused: string }): Promise<PartOutcome> {
  const { totalId, migration } = total
  await totals.refuse(db, refused, { migration, totalId })
  await digestRuns.erase(db, [totalId])
  return 'REFUSED'
}

async function end(db: Db, { totalId, migration, askedBy, batchNos }: Total, merged: TotalSums): Promise<boolean> {
  if (!(await totals.finish(db, totalId, merged))) return false
  await digestRuns.erase(db, [totalId])
  const detail = { asked_by: askedBy, batches: batchNos.length, rows: merged.rows, sha256: merged.sha256 }
  await audits.insert(db, { actor: 'worker', action: 'manifest.total', subject: migration, detail })
  return true
}
