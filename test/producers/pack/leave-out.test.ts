// The documented way to equal totals over files of nested JSON, in which several cards may share a line: the receiver packs,
// the sender computes with the file of rows to leave out, and the receiver packs again.
import { execFile } from 'node:child_process'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { decrypt, readMessage, readPrivateKey } from 'openpgp'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makePgpKeyPair } from '../../../producers/rows/openpgp/decrypt.ts'
import { runCommand } from '../../support/command.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'

const RECIPE = fileURLToPath(new URL('../../../docs/sign-off/', import.meta.url))

interface Customer {
  id: string
  cards: { id: string; number: string; exp_month: number; exp_year: number }[]
}

const card = (n: number, number = testPan(n), year = 2030) => ({
  id: `card_${n}`,
  number,
  exp_month: 12,
  exp_year: year,
})
const customer = (n: number, ...cards: Customer['cards']): Customer => ({ id: `cus_${n}`, cards })
const BAD = '4111111111111112'

/** Customer 3 has no card, the card of customer 4 is rejected, and the stored date of customer 5's second card is another. */
const customersOf = (from: number) => [
  customer(from, card(from), card(from + 50)),
  customer(from + 1, card(from + 1)),
  customer(from + 2),
  customer(from + 3, card(from + 3, BAD)),
  customer(from + 4, card(from + 4), card(from + 54)),
]
const textOf = (customers: readonly Customer[], separator = '') =>
  `${separator.repeat(2)}{"customers":[${separator}${customers.map(one => JSON.stringify(one)).join(`,${separator}`)}]}`

describeStore('the rows that both sides leave out', engine => {
  let installation: Installation
  let batches: string[]
  const path = (name: string) => join(installation.dataDir, name)
  const tokenmill = async (args: string[]) => {
    const end = await runCommand(args, { env: installation.env, cwd: installation.dataDir })
    return { ...end, json: end.stdout.startsWith('{') ? JSON.parse(end.stdout) : undefined }
  }
  const withClient = (args: string[]) => tokenmill([...args, '--client', installation.clientFile, '--json'])
  const pack = (...more: string[]) =>
    withClient(['manifest', 'pack', 'one.json', 'two.json', '--migration', 'spring-2030', ...more])
  const read = async () => JSON.parse(await readFile(path('spring-2030.pack.json'), 'utf8'))
  const migrate = async (name: string, text: string) => {
    await writeFile(path(name), text)
    const words = ['migrate', name, '--from', 'stripe-json', '--on-conflict', 'keep', '--provider-account', 'acct_1']
    const end = await withClient(words)
    expect([0, 3], end.stderr).toContain(end.code)
    return end.json.batch_id as string
  }

  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
    const stored = [154, 254].map(n => ({ ...customer(n, card(n, testPan(n), 2029)), id: `cus_${n - 50}` }))
    await migrate('before.json', textOf(stored))
    // Where each customer has a line, that of the rejected card is 7, and the row left out of the total is the seventh.
    batches = [
      await migrate('one.json', textOf(customersOf(100))),
      await migrate('two.json', textOf(customersOf(200), '\n')),
    ]
    const { publicKey, privateKey } = await makePgpKeyPair('sender')
    await writeFile(path('sender.asc'), publicKey)
    const words = ['--migration', 'spring-2030', '--to', 'sender.asc', '--out', 'total-key.asc']
    const made = await tokenmill(['manifest', 'total-key', ...words])
    expect(made.code, made.stderr).toBe(0)
    const message = await readMessage({ armoredMessage: await readFile(path('total-key.asc'), 'utf8') })
    const { data } = await decrypt({ message, decryptionKeys: await readPrivateKey({ armoredKey: privateKey }) })
    await writeFile(path('key.txt'), String(data))
  })
  afterAll(() => installation?.close())

  it('stand in one file as the results name them, with every row that took no effect', async () => {
    const made = await pack()
    expect(made, made.stderr).toMatchObject({ code: 3, json: { exceptions: { rows: 4, open: 4 } } })
    expect((await readFile(path('spring-2030.pack.leave-out.csv'), 'utf8')).trim().split('\n')).toEqual([
      'batch_id,line,item,reason',
      ...[`${batches[0]},1,3,no_card`, `${batches[0]},1,4.1,pan_luhn`, `${batches[0]},1,5.2,expiry_differs`],
      ...[`${batches[1]},6,3,no_card`, `${batches[1]},7,4.1,pan_luhn`, `${batches[1]},8,5.2,expiry_differs`],
    ])
    const { total, exceptions } = await read()
    expect(total.vault).toMatchObject({ rows: 8, exceptions: { rows: 2, by_reason: { expiry_differs: 2 } } })
    expect(exceptions.listed_open).toMatchObject([
      { batch_id: batches[0], line: 1, item: '4.1', kind: 'REJECTED' },
      { batch_id: batches[0], line: 1, item: '5.2', kind: 'total', reference: 'card_154' },
      { batch_id: batches[1], line: 7, item: '4.1', kind: 'REJECTED' },
      { batch_id: batches[1], line: 8, item: '5.2', kind: 'total', reference: 'card_254' },
    ])
  })

  it('let the sender compute an equal total by the call that the docs give', async () => {
    const columns = 'batch_id,item,number,expiry,reference'
    const rows = [100, 200].flatMap((from, index) =>
      customersOf(from).flatMap(({ cards }, element) =>
        cards.length === 0
          ? [`${batches[index]},${element + 1},,,`]
          : cards.map(({ id, number }, at) => `${batches[index]},${element + 1}.${at + 1},${number},203012,${id}`),
      ),
    )
    await writeFile(path('rows.csv'), [columns, ...rows, ''].join('\n'))
    await copyFile(`${RECIPE}total.py`, path('total.py'))
    const documented = /^python3 total\.py .*$/m.exec(await readFile(`${RECIPE}total.md`, 'utf8'))?.[0] ?? 'false'
    await promisify(execFile)('sh', ['-c', documented], { cwd: installation.dataDir })
    const made = await pack('--their-total', 'their-total.json')
    expect(made, made.stderr).toMatchObject({ code: 3, json: { total: { rows: 8, equal: true } } })
    // Without the columns that tell rows apart the program refuses.
    for (const [column, told] of [
      [0, 'add the column batch_id'],
      [1, 'add the column item'],
    ] as const) {
      const without = [columns, ...rows].map(row =>
        row
          .split(',')
          .filter((_, index) => index !== column)
          .join(),
      )
      await writeFile(path('rows.csv'), without.join('\n'))
      const refused = promisify(execFile)('sh', ['-c', documented], { cwd: installation.dataDir })
      await expect(refused).rejects.toThrow(told)
    }
  })

  it('are decided by item, one and not the other of a line or of that number', async () => {
    const [one, two] = batches
    const decided = [
      'batch_id,line,item,decision,by,on',
      `${one},1,4.1,drop,Ann,2030-01-31`,
      `${two},7,4.1,drop,Ann,2030-01-31`,
    ]
    await writeFile(path('decisions.csv'), `${[...decided, `${one},1,,drop,Ann,2030-01-31`].join('\n')}\n`)
    const made = await pack('--decisions', 'decisions.csv')
    expect(made, made.stderr).toMatchObject({ code: 3, json: { exceptions: { decided: 2, open: 2 } } })
    const { exceptions } = await read()
    expect(exceptions.listed_open).toMatchObject([{ item: '5.2' }, { item: '5.2' }])
    expect(exceptions.unused_decisions).toEqual({ count: 1, lines: [4] })
  })

  it('are checked with the pack', async () => {
    const verify = () => withClient(['manifest', 'verify', 'spring-2030.pack.json'])
    expect(await verify()).toMatchObject({
      code: 0,
      json: { checks: { results_counts: 'holds', leave_out_digest: 'holds' } },
    })
    const file = path('spring-2030.pack.leave-out.csv')
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace('expiry_differs', 'number_differs'))
    expect(await verify()).toMatchObject({
      code: 1,
      json: { checks: { results_counts: 'fails', leave_out_digest: 'fails' } },
    })
    await writeFile(file, text)
  })
})
