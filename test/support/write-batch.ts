// Encrypts clear cards as a batch of one chunk and sends it as a client. Returns the outcome of each.
import { randomUUID } from 'node:crypto'
import type { Client } from '../../producers/client.ts'
import { tokenBatch } from '../../producers/token-batch.ts'
import type { Installation } from './installation.ts'

export async function writeBatch(
  client: Client,
  { credentials, scope }: Pick<Installation, 'credentials' | 'scope'>,
  cards: readonly Record<string, unknown>[],
): Promise<string[]> {
  const captureKey = credentials.captureKeys.jwe
  if (!captureKey) throw new Error('these credentials hold no JWE key')
  const plan = {
    batchId: randomUUID(),
    recordKind: 'token-create' as const,
    tokenScope: scope,
    acceptedAt: Math.floor(Date.now() / 1000),
    captureKey,
  }
  const lines = cards.map((card, index) => JSON.stringify({ line: index + 2, request: { card } }))
  const ask = await tokenBatch(client.clientId, plan, { lines, number: 0 })
  if ('refused' in ask) throw new Error(`refused: ${ask.reason}`)
  const { request, jti, block } = ask
  const { records } = await client.call('token-batch', request, { jti, block })
  return records?.map(({ outcome }) => outcome) ?? []
}
