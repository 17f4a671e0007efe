// Sends generated streams of any size through `tokenmill inspect -`, as nested JSON and as CSV: every row is counted
// rightly, and memory stays flat. Nothing of the streams is written to disk but the digests that inspect spills.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { HEAP_FLAGS } from '../../bin/launch.mjs'
import { testPan } from '../../test/support/test-pan.ts'
import { peakMiB } from '../migrate.ts'
import { type Check, PROGRESS_MS } from './run.ts'

/** The most memory that `inspect` may use, however long its input is, in MiB. */
const INSPECT_MIB_MAX = 400
const PIECE_CHARACTERS = 256 * 1024
const COMMAND = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

interface Form {
  name: string
  /** The profile by which the stream is read. */
  from: string
  head: string
  /** The two cards of a customer. */
  customer(number: number): string
  tail: string
}

/** Every fifth customer's second card is the second card of the customer before. */
function panOf(customer: number, card: 0 | 1): string {
  return testPan(card === 1 && customer % 5 === 4 ? 2 * customer - 1 : 2 * customer + card)
}

const FORMS: readonly Form[] = [
  {
    name: 'nested JSON',
    from: 'stripe-json',
    head: '{"customers":[\n',
    customer: n => {
      const card = (at: 0 | 1) =>
        `{"id":"card_${n}_${at}","number":"${panOf(n, at)}","exp_month":"12","exp_year":"2031","name":"ADA LOVELACE","address_line1":"12 Long Street"}`
      return `${n === 0 ? '' : ',\n'}{"id":"cus_${n}","default_source":"card_${n}_0","cards":[${card(0)},${card(1)}]}`
    },
    tail: '\n]}\n',
  },
  {
    name: 'CSV',
    from: 'stripe-csv',
    head: 'id,default_source,card.id,card.number,card.exp_month,card.exp_year,card.name,card.address_line1,card.address_line2,card.address_city,card.address_state,card.address_zip,card.address_country\n',
    customer: n => {
      const card = (at: 0 | 1) =>
        `cus_${n},card_${n}_0,card_${n}_${at},${panOf(n, at)},12,2031,ADA LOVELACE,12 Long Street,,London,,N1 9GU,GB\n`
      return card(0) + card(1)
    },
    tail: '',
  },
]

/** `forms` selects some of the forms, by name; without it all are sent. */
export async function soakInspect(options: { bytes: number; forms?: readonly string[]; check: Check }): Promise<void> {
  const { bytes, forms, check } = options
  for (const form of FORMS) if (!forms || forms.includes(form.name)) await soakForm(form, bytes, check)
}

async function soakForm(form: Form, bytes: number, check: Check): Promise<void> {
  const made = { customers: 0 }
  const child = spawn(process.execPath, [...HEAP_FLAGS, COMMAND, 'inspect', '-', '--from', form.from, '--json'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exit = new Promise<number | null>(resolve => child.once('close', resolve))
  const pid = child.pid ?? 0
  let peak = 0
  const watching = setInterval(() => {
    peak = Math.max(peak, peakMiB(pid))
  }, 100)
  const began = performance.now()
  const telling = setInterval(() => {
    const seconds = (performance.now() - began) / 1000
    const rate = Math.round((2 * made.customers) / seconds)
    process.stdout.write(
      `  inspect, ${form.name}: ${2 * made.customers} rows after ${seconds.toFixed(0)} s, ${rate} rows/s, ${residentMiB(pid)} MiB, peak ${peak} MiB\n`,
    )
  }, PROGRESS_MS)
  const told = text(child.stdout)
  const sent = pipeline(Readable.from(partsOf(form, bytes, made)), child.stdin).catch(() => undefined)
  const code = await Promise.all([exit, sent])
    .then(([status]) => status)
    .finally(() => {
      clearInterval(watching)
      clearInterval(telling)
    })
  const seconds = (performance.now() - began) / 1000
  const rows = 2 * made.customers
  const part = `inspect, ${rows} rows of ${form.name}`
  process.stdout.write(`  ${part}: ${seconds.toFixed(0)} s, ${Math.round(rows / seconds)} rows/s\n`)
  check(part, 'ends well', code, 0)
  const { cards } = JSON.parse((await told) || '{}') as { cards?: Record<string, unknown> }
  const shared = Math.floor(made.customers / 5)
  const expected = {
    rows,
    cards: rows,
    distinctCards: rows - shared,
    rejected: {},
    customers: { distinct: made.customers, withOneRow: 0, rowsMost: 2 },
  }
  const { customers } = (cards?.['owners'] ?? {}) as { customers?: unknown }
  const { rows: found, cards: sound, distinctCards, rejected } = cards ?? {}
  check(
    part,
    'counts every row, card and customer',
    { rows: found, cards: sound, distinctCards, rejected, customers },
    expected,
  )
  check(part, `holds at most ${INSPECT_MIB_MAX} MiB (${peak})`, peak <= INSPECT_MIB_MAX, true)
}

function* partsOf({ head, customer, tail }: Form, bytes: number, made: { customers: number }): Generator<string> {
  let part = head
  for (let given = 0; given + part.length < bytes; made.customers += 1) {
    part += customer(made.customers)
    if (part.length < PIECE_CHARACTERS) continue
    given += part.length
    yield part
    part = ''
  }
  yield part + tail
}

function residentMiB(pid: number): number {
  try {
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024)
  } catch {
    return 0
  }
}
