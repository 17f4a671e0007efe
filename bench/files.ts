// `node bin/launch.mjs bench/files.ts [--rows 60000] [--rounds 3]`: whole files in forms that providers send, each through
// `tokenmill migrate` as a user runs it, in alternation. Goals: nested JSON at no less than 0.6 of the rate of our own CSV;
// a file with owners at no less than 0.75 of the same file without.
import { createReadStream, createWriteStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { writeSample } from '../bin/sample/cards.ts'
import { BUILT_IN } from '../producers/rows/profile/built-in.ts'
import { runMigrate } from './migrate.ts'
import { openPlace, type Place } from './place.ts'

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '60000' }, rounds: { type: 'string', default: '3' } },
})
const rows = Number(values.rows)

interface Form {
  name: string
  file: string
  args: string[]
}

const place = await openPlace()
try {
  const forms = await writeForms(place.dir)
  const rates = new Map<string, number[]>(forms.map(({ name }) => [name, []]))
  for (let round = 0; round < Number(values.rounds); round += 1)
    for (const [index, form] of forms.entries())
      rates.get(form.name)?.push(await rateOf(place, form, `${round}-${index}`))
  print(rates)
} finally {
  await place.close()
}

async function rateOf(where: Place, { file, args }: Form, run: string): Promise<number> {
  const installation = await where.open('redis')
  const out = ['--results', `${file}.${run}.csv`, '--manifest', `${file}.${run}.json`]
  const { perSecond } = await runMigrate(installation, file, [...args, ...out]).finally(installation.close)
  return perSecond
}

async function writeForms(dir: string): Promise<Form[]> {
  const at = (name: string) => join(dir, name)
  const sample = { rows, seed: 1, now: Date.now() }
  await writeSample(at('own.csv'), sample)
  await writeSample(at('stripe.csv'), { ...sample, isStripe: true })
  await pipeline(customersOf(at('stripe.csv')), createWriteStream(at('stripe.json')))
  const profiles = { csv: BUILT_IN['stripe-csv'], json: BUILT_IN['stripe-json'] }
  for (const [form, profile] of Object.entries(profiles)) {
    if (!profile) throw new Error(`no profile of Stripe's ${form} is built in`)
    const { on_file: _, return: __, ...plain } = profile
    await writeFile(at(`${form}-plain.json`), JSON.stringify({ ...plain, name: `${form}-plain` }))
    await writeFile(at(`${form}-owners.json`), JSON.stringify({ ...profile, name: `${form}-owners` }))
  }
  const from = (form: string, kind: string) => ['--from', at(`${form}-${kind}.json`)]
  return [
    { name: 'our own CSV', file: at('own.csv'), args: [] },
    { name: "Stripe's CSV", file: at('stripe.csv'), args: from('csv', 'plain') },
    { name: "Stripe's CSV with owners", file: at('stripe.csv'), args: from('csv', 'owners') },
    { name: 'nested JSON', file: at('stripe.json'), args: from('json', 'plain') },
    { name: 'nested JSON with owners', file: at('stripe.json'), args: from('json', 'owners') },
  ]
}

/** The same rows as customers with their cards, two customers a line. Rows that can't be split are left out. */
async function* customersOf(path: string): AsyncGenerator<string> {
  yield '{"customers":[\n'
  let customer: { id: string; default_source: string; cards: object[] } | undefined
  let isFirst = true
  const textOf = (one: object) => {
    const text = `${isFirst ? '' : ',\n'}${JSON.stringify(one)}`
    isFirst = false
    return text
  }
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const cells = line.split(',')
    const [id = '', month, year, card, name, number, defaultSource = ''] = [cells[3], ...cells.slice(10, 16)]
    if (cells.length !== 17 || !id.startsWith('cus_')) continue
    if (customer && customer.id !== id) {
      yield textOf(customer)
      customer = undefined
    }
    customer ??= { id, default_source: defaultSource, cards: [] }
    customer.cards.push({ id: card, number, exp_month: month, exp_year: year, name })
  }
  if (customer) yield textOf(customer)
  yield '\n]}\n'
}

function print(rates: ReadonlyMap<string, readonly number[]>): void {
  const median = (list: readonly number[]) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0
  const of = (name: string) => median(rates.get(name) ?? [])
  const beside = { "Stripe's CSV with owners": "Stripe's CSV", 'nested JSON with owners': 'nested JSON' } as Record<
    string,
    string
  >
  for (const [name, all] of rates) {
    const reference = beside[name] ?? 'our own CSV'
    const ratio = (of(name) / of(reference)).toFixed(2)
    const runs = all.map(Math.round).join(', ')
    process.stdout.write(`${name}: ${Math.round(of(name))} rows/s (${runs}), ${ratio} of ${reference}\n`)
  }
}
