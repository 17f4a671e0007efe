// Updates with a `sequence`, sent in any order and worked by several processes at once: in the end the token is as the
// update with the highest sequence says.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../bin/sample/pan.ts'
import type { Client } from '../../producers/client.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { parseReuseToken } from '../../src/token/token.ts'
import { describeEngines } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { volume } from '../support/volume.ts'
import { QUICK } from './bundle.ts'
import { shuffle } from './shuffle.ts'

const TOKENS = volume(60, 200)
const UPDATES = 10
const PROCESSES = 3

describeEngines('updates with a sequence, out of order,', engine => {
  let installation: Installation
  let client: Client
  beforeAll(async () => {
    installation = await openInstallation(engine, QUICK)
    const processes = Array.from({ length: PROCESSES }, () => installation.startWorkers({ roles: ['interactive'] }))
    await Promise.all(processes)
    client = await installation.connect()
  })
  afterAll(() => installation?.close())

  async function makeTokens(): Promise<string[]> {
    const tokens: string[] = []
    async function* cards() {
      for (let index = 0; index < TOKENS; index++) {
        const card = { cardNumber: panOf(index, 7), expiryMonth: 12, expiryYear: 2031 }
        const request = { token_scope: installation.scope, ...(await client.encryptCard(card)) }
        yield { kind: 'token-create' as const, request }
      }
    }
    for await (const { result } of client.bulk(cards())) tokens.push(String(result.record?.['reuse_token']))
    return tokens
  }

  it('leave each token with the last of them, and each earlier one either done or refused as stale', async () => {
    const tokens = await makeTokens()
    const seed = Date.now() % 1_000_000
    const updates = tokens.flatMap(id =>
      Array.from({ length: UPDATES }, (_, index) => ({
        kind: 'token-update' as const,
        request: { id, card_holder_name: `HOLDER ${index + 1}` },
        sequence: index + 1,
      })),
    )
    const ended = new Map<string, Result[]>(tokens.map(id => [id, []]))
    const sent = shuffle(updates, seed)
    for await (const { item, result } of client.bulk(sent, { inFlight: sent.length })) {
      const results = ended.get(item.request.id) ?? []
      results[item.sequence] = result
    }
    const rows = await installation.vault.store.query<{ id: string; name: string; version: number; mark: number }>({
      text: `select token_id as id, card_holder_name as name, version, sequence::int as mark
        from tokenmill.token join tokenmill.sequence_mark using (token_id)`,
    })
    const stored = new Map(rows.rows.map(({ id, ...row }) => [id, row]))
    for (const [token, results] of ended) {
      const words = results.slice(1).map(wordOf)
      expect(words, `seed ${seed}`).toHaveLength(UPDATES)
      expect(
        words.filter(word => word !== 'SUCCEEDED' && word !== 'sequence_stale'),
        `seed ${seed}`,
      ).toEqual([])
      expect(words.at(-1), `seed ${seed}`).toBe('SUCCEEDED')
      // Every one that succeeded was written once, and nothing else was.
      const version = 1 + words.filter(word => word === 'SUCCEEDED').length
      const row = stored.get(parseReuseToken(token) ?? '')
      expect(row, `seed ${seed}`).toEqual({ name: `HOLDER ${UPDATES}`, version, mark: UPDATES })
    }
  })
})

function wordOf({ status, error }: Result): string {
  return status === 'SUCCEEDED' ? status : (error?.details?.['body.sequence']?.code ?? `${error?.code}`)
}
