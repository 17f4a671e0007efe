// times token insert of 500-row chunks alone
import pg from 'pg'
import { randomBytes } from 'node:crypto'
import { openPlace } from './place.ts'
import * as tokens from '../src/store/tokens.ts'
const place = await openPlace()
try {
  const inst = await place.open('redis')
  const { openStore } = await import('../src/store/pool.ts')
  const store = openStore(inst.vault.database.url, { log: inst.session.log, connectionsMax: 4 })
  const cpu = process.cpuUsage()
  let t0 = performance.now(); let tFind = 0, tIns = 0
  const N = 100
  for (let c = 0; c < N; c++) {
    const rows = Array.from({ length: 500 }, (_, i) => ({
      tokenId: `0199${randomBytes(2).toString('hex')}-${c.toString(16).padStart(4, '0')}-7${randomBytes(2).toString('hex').slice(1)}-8${randomBytes(2).toString('hex').slice(1)}-${randomBytes(6).toString('hex')}`,
      tokenScope: '11111111-1111-4111-8111-111111111111', status: 'ACTIVE', suspendedReason: null, tokenType: 'REUSE',
      fingerprint: randomBytes(32), sealed: randomBytes(44), sealVersion: 1, bin: '41111111', lastFour: '1111', expiryMonth: 12, expiryYear: 2030,
      cardHolderName: 'ANNA MEYER', cardHolderEmail: null, cardSequence: null, startMonth: null, startYear: null, brand: 'VISA', cardBrand: null, binRange: -1,
      analyticsToken: null, tokenExpiryDate: null, createdAt: Date.now(), updatedAt: Date.now(), version: 1, lastReceipt: '11111111-1111-4111-8111-111111111111',
      mark: { batchNo: 1, created: true, line: c * 500 + i, lines: null },
    }) as unknown as tokens.StoredToken)
    let t = performance.now()
    await tokens.findByFingerprints(store, rows.map(r => r.fingerprint!))
    tFind += performance.now() - t; t = performance.now()
    await store.transaction(async db => { await tokens.insertAll(db, rows) })
    tIns += performance.now() - t
  }
  console.log('find us/card', tFind * 1000 / N / 500, 'insert us/card', tIns * 1000 / N / 500, 'node cpu us/card', (process.cpuUsage(cpu).user) / N / 500)
  await store.close(); await inst.close()
} finally { await place.close() }
