// Case (c): `token-create` jobs one by one through the client library, as an upstream system sends them, 200 at once.
// Case (j): `token-lifecycle` jobs likewise, on tokens that were made before.
import { panOf } from '../../bin/sample/pan.ts'
import { reuseTokenOf } from '../../src/token/token.ts'
import type { Installation } from '../../test/support/installation.ts'
import { type ProcessorTime, watchProcessor } from './processor.ts'
import { startInteractiveWorkers } from './workers.ts'

export interface SingleRun {
  rows: number
  perSecond: number
  /** Per job. */
  processor: ProcessorTime
}

export const IN_FLIGHT = 200

export async function runSingle(installation: Installation, rows: number): Promise<SingleRun> {
  await startInteractiveWorkers(installation)
  return createAll(installation, rows)
}

/** Suspends as many tokens as it makes first. */
export async function runLifecycle(installation: Installation, rows: number): Promise<SingleRun> {
  await startInteractiveWorkers(installation)
  await createAll(installation, rows)
  const { rows: made } = await installation.vault.store.query<{ token_id: string }>({
    text: 'select token_id from tokenmill.token',
  })
  const ids = made.map(({ token_id: tokenId }) => reuseTokenOf({ tokenId, thirdParty: null }))
  return sendAll(
    installation,
    ids.map(id => ({ kind: 'token-lifecycle' as const, request: { id, action: 'SUSPEND' } })),
  )
}

/** Makes the jobs first. */
async function createAll(installation: Installation, rows: number): Promise<SingleRun> {
  const client = await installation.connect({ replyTo: 'sealing' })
  const items = []
  for (let index = 0; index < rows; index += 1) {
    const card = await client.encryptCard({ cardNumber: panOf(index, 5), expiryMonth: 12, expiryYear: 2030 })
    items.push({ kind: 'token-create' as const, request: { token_scope: installation.scope, ...card } })
  }
  return sendAll(installation, items)
}

interface Item {
  kind: 'token-create' | 'token-lifecycle'
  request: object
}

async function sendAll(installation: Installation, items: readonly Item[]): Promise<SingleRun> {
  const client = await installation.connect({ replyTo: 'bench' })
  const processor = await watchProcessor(installation)
  const began = performance.now()
  let failed = 0
  for await (const { result } of client.bulk(items, { inFlight: IN_FLIGHT }))
    if (result.status !== 'SUCCEEDED') failed += 1
  const rows = items.length
  const perSecond = (rows * 1000) / (performance.now() - began)
  const used = processor(rows)
  await client.close()
  if (failed > 0) throw new Error(`${failed} of ${rows} single jobs failed`)
  return { rows, perSecond, processor: used }
}
