import { randomBytes } from 'node:crypto'
import { openPlace } from './place.ts'
import * as tokens from '../src/store/tokens.ts'
const place = await openPlace()
try {
  const inst = await place.open('redis')
  const { openStore } = await import('../src/store/pool.ts')
  const store = openStore(inst.vault.database.url, { log: inst.session.log, connectionsMax: 4 })
  const make = (c: number) => Array.from({ length: 500 }, (_, i) => ({
      tokenId: `0199${randomBytes(2).toString('hex')}-${c.toString(16).padStart(4, '0')}-7${randomBytes(2).toString('hex').slice(1)}-8${randomBytes(2).toString('hex').slice(1)}-${randomBytes(6).toString('hex')}`,
      tokenScope: '11111111-1111-4111-8111-111111111111', status: 'ACTIVE', suspendedReason: null, tokenType: 'REUSE',
      fingerprint: randomBytes(32), sealed: randomBytes(44), sealVersion: 1, bin: '41111111', lastFour: '1111', expiryMonth: 12, expiryYear: 2030,
      cardHolderName: 'ANNA MEYER', cardHolderEmail: null, cardSequence: null, startMonth: null, startYear: null, brand: 'VISA', cardBrand: null, binRange: -1,
      analyticsToken: null, tokenExpiryDate: null, createdAt: Date.now(), updatedAt: Date.now(), version: 1, lastReceipt: '11111111-1111-4111-8111-111111111111',
      mark: { batchNo: 1, created: true, line: c * 500 + i, lines: null },
    }) as unknown as tokens.StoredToken)
  const all = Array.from({ length: 100 }, (_, c) => make(c))
  // node side only
  const fake = { query: async (s: { values: unknown[] }) => ({ rows: [], count: 500 }) }
  for (let k = 0; k < 2; k++) {
    let t = performance.now(); const u = process.cpuUsage()
    for (const rows of all) await tokens.insertAll(fake as never, rows)
    console.log('arrays us/card', (performance.now() - t) * 1000 / 50000, process.cpuUsage(u).user / 50000)
  }
  const u = process.cpuUsage(); let t = performance.now()
  for (const rows of all) await store.transaction(async db => { await tokens.insertAll(db, rows) })
  console.log('insert wall us/card', (performance.now() - t) * 1000 / 50000, 'node', process.cpuUsage(u).user / 50000)
  const { rows } = await store.query<Record<string, string>>({ text: `explain analyze insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision) select current_date, 'x', gen_random_uuid(), gen_random_uuid(), 1 from generate_series(1,500)` })
  console.log(rows.map(r => Object.values(r)[0]).join('\n'))
  await store.close(); await inst.close()
} finally { await place.close() }
