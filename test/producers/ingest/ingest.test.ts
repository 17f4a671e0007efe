// A file of transactions through the command, the queue, a worker and the store.
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCommand } from '../../support/command.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { CSV_HEADER, csvRowOf, transactionOf } from './sample.ts'

const ROWS = 2_500

describeOnRedis('tokenmill ingest transactions', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(() => installation.close())

  const ingest = async (file: string, ...more: string[]) => {
    const words = ['ingest', 'transactions', file, '--client', installation.clientFile, '--json', ...more]
    const { code, stdout, stderr } = await runCommand(words, { env: installation.env })
    return { code, told: JSON.parse(stdout || 'null'), stderr }
  }
  const sums = async () => {
    const { rows } = await installation.vault.store.query<Record<string, unknown>>({
      text: `select currency, count(*)::int as lines, sum(amount)::text as gross, sum(amount - fee - commission)::text as net
from tokenmill.transaction group by currency order by currency`,
    })
    return rows
  }

  it('puts every line of a CSV into the ledger once, tells the refused ones, and changes nothing when it is run again', async () => {
    const good = Array.from({ length: ROWS }, (_, index) => transactionOf(index, { entity: ENTITY }))
    const lines = good.map(csvRowOf)
    const [first = ''] = lines
    const bad = [
      // The same again, and the same uid with another amount.
      first,
      csvRowOf({ ...transactionOf(0, { entity: ENTITY }), amount: '999' }),
      // Another entity, an unknown currency, too many decimals, a negative sale, a whole card number, too few fields.
      csvRowOf({ ...transactionOf(ROWS + 1, { entity: randomUUID() }) }),
      csvRowOf(transactionOf(ROWS + 2, { entity: ENTITY })).replace(/,(EUR|JPY|KWD|CLF),/, ',XTS,'),
      csvRowOf({ ...transactionOf(ROWS + 3, { entity: ENTITY }), currency: 'JPY', amount: '1' }).replace(
        ',JPY,1,',
        ',JPY,1.5,',
      ),
      csvRowOf({ ...transactionOf(0, { entity: ENTITY, seed: 'negative' }), amount: '-1' }),
      csvRowOf({ ...transactionOf(0, { entity: ENTITY, seed: 'card' }), masked_card: '4111111111111111' }),
      'too,few,fields',
    ]
    const file = join(installation.dataDir, 'ledger.csv')
    await writeFile(file, `${[CSV_HEADER, ...lines, ...bad].join('\n')}\n`)
    const run = await ingest(file)
    expect(run, run.stderr).toMatchObject({
      code: 3,
      told: {
        complete: true,
        rows: ROWS + bad.length,
        created: ROWS,
        unchanged: 1,
        rejected: bad.length - 1,
        failed: 0,
      },
    })
    const results = (await readFile(`${file}.results.csv`, 'utf8')).trimEnd().split('\n')
    const reasons = results.slice(1).map(line => line.split(',').slice(-2).join(':'))
    expect(results[0]).toBe('line,transaction_uid,outcome,code,reason,field')
    expect(reasons).toEqual([
      'transaction_conflict:',
      'entity_forbidden:entity_uid',
      'currency_unknown:currency',
      'amount_exponent:amount',
      'amount_sign:amount',
      'field_format:masked_card',
      'row_fields:',
    ])
    expect(results[1]).toMatch(new RegExp(`^${ROWS + 3},${good[0]?.transaction_uid},REJECTED,400,`))
    expect(results.join('')).not.toContain('4111111111111111')

    const before = await sums()
    const expected = Object.entries(Object.groupBy(good, ({ currency }) => currency))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([currency, all = []]) => ({
        currency,
        lines: all.length,
        gross: String(all.reduce((sum, line) => sum + BigInt(line.amount), 0n)),
        net: String(
          all.reduce((sum, { amount, fee, commission }) => sum + BigInt(amount) - BigInt(fee) - BigInt(commission), 0n),
        ),
      }))
    expect(before).toEqual(expected)

    // The repeat is answered from the receipts; with chunks of another size it is compared with the ledger.
    const again = await ingest(file)
    expect(again.told).toMatchObject({
      batch_id: run.told.batch_id,
      created: ROWS,
      unchanged: 1,
      rejected: bad.length - 1,
    })
    const recut = await ingest(file, '--chunk', '700')
    expect(recut.told).toMatchObject({ created: 0, unchanged: ROWS + 1, rejected: bad.length - 1 })
    expect(await sums()).toEqual(before)
  })

  it('takes NDJSON with amounts in minor units, and answers 64 for a header that it does not know', async () => {
    const file = join(installation.dataDir, 'more.ndjson')
    const rows = Array.from({ length: 20 }, (_, index) => {
      const { amount, fee, commission, ...rest } = transactionOf(index, {
        entity: ENTITY,
        seed: 'ndjson',
        from: '2019-05-01',
      })
      return { ...rest, amount_minor: Number(amount), fee_minor: fee, commission_minor: Number(commission) }
    })
    await writeFile(file, [...rows.map(row => JSON.stringify(row)), '{"unknown":1}'].join('\n'))
    const run = await ingest(file)
    expect(run, run.stderr).toMatchObject({ code: 3, told: { rows: 21, created: 20, rejected: 1 } })
    const wrong = join(installation.dataDir, 'wrong.csv')
    await writeFile(wrong, 'uid,amount\n1,2\n')
    const refused = await ingest(wrong)
    expect(refused.code).toBe(64)
    expect(refused.stderr).toContain('transaction_uid is missing')
  })
})
