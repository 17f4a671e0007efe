// Case (c): `token-create` jobs one by one through the client library, as an upstream system sends them.
import { panOf } from '../producers/migrate/sample.ts'
import type { Installation } from '../test/support/installation.ts'

export async function runSingle(
  installation: Installation,
  rows: number,
): Promise<{ rows: number; perSecond: number }> {
  await installation.startWorkers({ roles: ['interactive'] })
  const client = await installation.connect({ replyTo: 'bench' })
  const requests: object[] = []
  for (let index = 0; index < rows; index += 1) {
    const card = await client.encryptCard({ cardNumber: panOf(index, 5), expiryMonth: 12, expiryYear: 2030 })
    requests.push({ token_scope: installation.scope, ...card })
  }
  async function* items() {
    for (const request of requests) yield { kind: 'token-create' as const, request }
  }
  const began = performance.now()
  let failed = 0
  for await (const { result } of client.bulk(items(), { inFlight: 200 })) if (result.status !== 'SUCCEEDED') failed += 1
  const perSecond = (rows * 1000) / (performance.now() - began)
  if (failed > 0) throw new Error(`${failed} of ${rows} single jobs failed`)
  return { rows, perSecond }
}
