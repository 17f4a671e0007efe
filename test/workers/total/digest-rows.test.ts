// Which rows a total leaves out because their token has changed, and the digest of a row.
import { createHmac, createSecretKey, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { findById } from '../../../src/store/batch/batch-list.ts'
import { WHOLE_BATCH } from '../../../src/store/batch/batch-row.ts'
import { ALL } from '../../../src/store/sight.ts'
import { DIGEST_BYTES } from '../../../src/store/total/digest-runs.ts'
import { digestRows } from '../../../workers/total/digest-rows.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type OnFileWorld, openOnFile, owner, record } from '../on-file-bundle.ts'

const unproved: (string | number)[] = []
const KEY = createSecretKey(Buffer.alloc(32, 7))

describeStore('the rows of a total', engine => {
  let installation: Installation
  let world: OnFileWorld
  beforeAll(async () => {
    installation = await openInstallation(engine)
    world = await openOnFile(installation)
  })
  afterAll(() => installation?.close())

  async function digest(batchId: string) {
    const [batch] = await findById(ALL, installation.vault.store, { batchId }, WHOLE_BATCH)
    return digestRows({ batchNo: batch?.batchNo ?? 0, chunkFrom: 0, chunkTo: 10 }, KEY, {
      ...installation.vault,
      onUnproved: (_, id) => unproved.push(id),
    })
  }
  const give = async (batchId: string, cards: readonly [pan: number, name: string][], more = {}) => {
    const references = cards.map(([, name]) => owner(name).card_id)
    return world.chunk(
      cards.map(([pan, name]) => record(pan, owner(name))),
      { batchId, references, ...more },
    )
  }

  it('are digested from number, date and reference', async () => {
    const batchId = randomUUID()
    await world.chunk([record(1), record(2)], { batchId, references: ['r-1', 'r-2'] })
    const { runs, leftOut } = await digest(batchId)
    const wanted = [1, 2].map(n =>
      createHmac('sha256', KEY)
        .update(`${testPan(n)}\n203112\nr-${n}`)
        .digest(),
    )
    expect(runs).toMatchObject([{ brand: 'VISA', digests: Buffer.concat(wanted.sort(Buffer.compare)) }])
    expect(runs[0]?.starts).toHaveLength(257)
    expect(runs[0]?.starts.at(-1)).toBe(2)
    expect(leftOut).toEqual([])
  })

  it('leave out an owner who has moved to another token, though the token has other owners', async () => {
    const batchId = randomUUID()
    await give(batchId, [
      [10, 'anna'],
      [10, 'bert'],
      [11, 'cora'],
    ])
    expect((await digest(batchId)).leftOut).toEqual([])
    await give(randomUUID(), [[12, 'bert']])
    const { leftOut, runs } = await digest(batchId)
    expect(leftOut).toEqual([{ line: 2, reference: 'card_bert', reason: 'owner_moved' }])
    expect(runs[0]?.digests).toHaveLength(2 * DIGEST_BYTES)
  })

  it('are not digested from a receipt that tokenmill did not write as it is', async () => {
    const batchId = randomUUID()
    await give(batchId, [[25, 'fritz']])
    await installation.vault.store.query({
      text: `update tokenmill.receipt set counts = counts || '{"CREATED": 7}' where jti like $1`,
      values: [`%${batchId}%`],
    })
    await expect(digest(batchId)).rejects.toMatchObject({ code: 'data' })
    expect(unproved).toHaveLength(1)
  })

  it('leave out a row whose token was relinked to another number by a later file', async () => {
    const batchId = randomUUID()
    await give(batchId, [[20, 'dora']])
    const [moved] = await give(randomUUID(), [[21, 'dora']], { policy: { relink: true } })
    expect(moved).toMatchObject({ outcome: 'UPDATED', reference_outcome: 'CHANGED' })
    expect((await digest(batchId)).leftOut).toMatchObject([{ line: 1, reason: 'number_differs' }])
  })

  it('keep an owner whose reference is not the id of the card while the token has an owner', async () => {
    const batchId = randomUUID()
    await world.chunk([record(30, owner('emil'))], { batchId, references: ['order 17'] })
    expect((await digest(batchId)).leftOut).toEqual([])
    await give(randomUUID(), [[31, 'emil']])
    expect((await digest(batchId)).leftOut).toMatchObject([{ reference: 'order 17', reason: 'owner_moved' }])
  })

  it('keep owners whose references are no ids of cards, though one of them is such an id by chance', async () => {
    const batchId = randomUUID()
    const names = Array.from({ length: 12 }, (_, index) => `nr_${index}`)
    const references = names.map((name, index) => (index === 0 ? owner(name).card_id : `customer_${index}`))
    await world.chunk(
      names.map((name, index) => record(50 + index, owner(name))),
      { batchId, references },
    )
    expect((await digest(batchId)).leftOut).toEqual([])
  })

  it('leave out a token that only stands for analytics: it has no number', async () => {
    const batchId = randomUUID()
    await world.chunk([record(40, undefined, { token_type: 'ANALYTICS' })], { batchId, references: ['a'] })
    expect((await digest(batchId)).leftOut).toMatchObject([{ line: 1, reason: 'no_number' }])
  })
})
