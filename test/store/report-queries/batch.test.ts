// The lines of the report of a batch, which SQL reads from the packed outcomes of chunks.
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { BATCH } from '../../../src/store/report-queries/batch.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, openInstallation } from '../../support/installation.ts'
import { openOnFile, owner, record } from '../../workers/on-file-bundle.ts'

describeStore('the report of a batch', engine => {
  it('tells no reason for records that took effect, with owners and without', async () => {
    const installation = await openInstallation(engine)
    try {
      const world = await openOnFile(installation)
      const batchId = randomUUID()
      await world.chunk([record(1, owner('anna')), record(2), { card: { cardNumber: '1' } }], { batchId })
      const { rows } = await installation.vault.store.query({ text: BATCH.lines, values: [ENTITY, batchId] })
      expect(rows).toEqual([
        { outcome: 'CREATED', reason: '', chunks: '1', records: '2' },
        { outcome: 'REJECTED', reason: 'pan_format', chunks: '1', records: '1' },
      ])
    } finally {
      await installation.close()
    }
  })
})
