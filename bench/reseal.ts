// `node bin/launch.mjs bench/reseal.ts [--rows 200000]`: re-encryption of tokens at full speed, beside a bare loop that
// reads, decrypts, encrypts and updates the same rows in sets of the same size, without lease, place or proof. The goal
// is 0.5 of the loop's rate. The loop runs before and after the re-encryption on the same store.
import { parseArgs } from 'node:util'
import { openLog } from '../src/log.ts'
import { byteas, plains } from '../src/store/columns.ts'
import type { Store } from '../src/store/pool.ts'
import * as reseals from '../src/store/reseal/reseals.ts'
import { SET_ROWS } from '../src/store/reseal/sealed-rows.ts'
import type { KeyRing } from '../src/vault/ring/key-ring.ts'
import { insertTokens } from '../test/workers/reseal/tokens.ts'
import { type TurnedVault, turnKey } from '../test/workers/reseal/turn-key.ts'
import { workReseal } from '../workers/reseal/reseal.ts'
import { openPlace } from './place.ts'

const { values } = parseArgs({ options: { rows: { type: 'string', default: '200000' } } })
const rows = Number(values.rows)
const INSERT_ROWS = 1_000

interface Row {
  token_id: string
  token_scope: string
  sealed: Buffer
  seal_version: number
}

async function bareLoop(store: Store, ring: KeyRing): Promise<void> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const { rows: found } = await store.query<Row>({
      name: 'bare-read',
      text: `select token_id, token_scope, sealed, seal_version from tokenmill.token where token_id > $1 order by token_id limit $2`,
      values: [after, SET_ROWS],
    })
    if (found.length === 0) return
    const fresh = found.map(row =>
      ring.seal(ring.open(row.sealed, row.seal_version, row.token_id, row.token_scope), row.token_id, row.token_scope),
    )
    await store.query({
      name: 'bare-write',
      text: `update tokenmill.token as t set sealed = v.sealed, seal_version = $3, version = version + 1
from unnest($1::uuid[], $2::bytea[]) as v(id, sealed) where t.token_id = v.id`,
      values: [plains(found.map(row => row.token_id)), byteas(fresh.map(({ sealed }) => sealed)), fresh[0]?.keyVersion],
    })
    after = found.at(-1)?.token_id ?? after
  }
}

async function perSecond(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return Math.round((rows * 1000) / (performance.now() - began))
}

const place = await openPlace()
try {
  const installation = await place.open('postgres')
  const { vault, scope } = installation
  try {
    for (let from = 0; from < rows; from += INSERT_ROWS)
      await insertTokens(vault.store, vault.ring, scope, Math.min(INSERT_ROWS, rows - from), from)
    await vault.store.query({ text: 'vacuum analyze tokenmill.token' })
    const turn = async (): Promise<TurnedVault> => turnKey(vault, 'seal')
    const bare = async () => {
      const { ring } = await turn()
      return perSecond(() => bareLoop(vault.store, ring))
    }
    const before = await bare()
    const turned = await turn()
    await reseals.begin(vault.store, { purpose: 'seal', version: turned.version, rowsExpected: undefined })
    const deps = { ...vault, ...turned, clock: Date.now, log: openLog('error') }
    // The first pass and the one that proves it.
    const own = await perSecond(() =>
      workReseal(deps, {
        rowsPerSecondMax: 100_000_000,
        replicaLagMsMax: 10_000,
        workMsMax: 60_000,
        walBytesPerSecondMax: 1e12,
        writersMs: 0,
      }),
    )
    const done = await reseals.find(vault.store, 'seal')
    if (done?.state !== 'DONE' || done.rowsDone !== rows) throw new Error('it is not done')
    const after = await bare()
    const limit = (before + after) / 2
    console.table({ rows, bareBefore: before, reseal: own, bareAfter: after, ratio: Number((own / limit).toFixed(2)) })
  } finally {
    await installation.close()
  }
} finally {
  await place.close()
}
