// `node bin/launch.mjs bench/scheme.ts [--cards 10000] [--rate 200] [--granted 200]`: provisions scheme tokens at a
// simulator that allows a number of calls per second, with interactive calls at the same time. The goals are: 95 % of
// the rate used, under 1 % of calls answered with 429, interactive p99 under 300 ms plus the simulator's latency.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { systemClock } from '../src/clock.ts'
import { openLog } from '../src/log.ts'
import { openSchemes } from '../src/scheme/open.ts'
import { Secret } from '../src/secret.ts'
import { checkDigit } from '../src/simulate/scheme/outcomes.ts'
import { startCommand } from '../test/support/process.ts'

const { values } = parseArgs({
  options: {
    cards: { type: 'string', default: '10000' },
    rate: { type: 'string', default: '200' },
    granted: { type: 'string' },
    latency: { type: 'string', default: '20' },
  },
})
const count = Number(values.cards)
const rate = Number(values.rate)
const INTERACTIVE_EVERY_MS = 100
const folder = mkdtempSync(join(tmpdir(), 'bench-scheme-'))
const words = ['--port', '0', '--data', folder, '--rate', values.rate, '--latency', values.latency]
const simulator = startCommand(['simulate', 'scheme', '--json', ...words])
try {
  const [printed] = await simulator.line(/\{[^}]*\}/)
  const printedSettings = JSON.parse(printed) as Record<string, string>
  const { url = '', TOKENMILL_SCHEME_FILE: file = '', TOKENMILL_PRIVATE_HOSTS: host = '' } = printedSettings
  const scheme = JSON.parse(readFileSync(file, 'utf8')) as { mdes: Record<string, unknown> }
  Object.assign(scheme.mdes, { tokenNumbers: false, ratePerSecond: Number(values.granted ?? values.rate) })
  writeFileSync(file, JSON.stringify(scheme))
  const schemes = openSchemes({ file, privateHosts: [host], log: openLog('warn'), clock: systemClock })
  const { mdes } = schemes
  if (mdes === undefined) throw new Error('the scheme file names no network')
  const pans = Array.from({ length: count }, (_, index) => {
    const body = `555555${String(index).padStart(9, '0')}`
    return body + checkDigit(body)
  })
  const waits: number[] = []
  const answers: Record<string, number> = {}
  let left = count
  let next = 0
  const began = performance.now()
  const provision = async () => {
    for (let index = next++; index < count; index = next++) {
      const card = { pan: new Secret(pans[index] ?? ''), expiryMonth: 12, expiryYear: 2030, cardHolderName: undefined }
      for (let again = true; again; ) {
        const { answer } = await mdes.provision(`bench-${index}`, card, 'bulk')
        answers[answer] = (answers[answer] ?? 0) + 1
        again = answer === 'again'
      }
      left -= 1
    }
  }
  const workers = Promise.all(Array.from({ length: 200 }, provision))
  while (left > 0) {
    const asked = performance.now()
    await mdes.get('bench', 'DSIMMC00', 'interactive')
    waits.push(performance.now() - asked)
    await pause(INTERACTIVE_EVERY_MS)
  }
  await workers
  const seconds = (performance.now() - began) / 1_000
  const stats = (await (await fetch(`${url}/_simulator/stats`)).json()) as {
    counts: Record<string, number>
    tasksWithSeveralTokens: number
    cardsWithSeveralLiveTokens: number
  }
  const { calls = 0, throttled = 0 } = stats.counts
  const sorted = waits.sort((a, b) => a - b)
  const at = (part: number) => Math.round(sorted[Math.floor(sorted.length * part)] ?? 0)
  console.table({
    cards: count,
    seconds: seconds.toFixed(1),
    'calls per second': ((calls - throttled) / seconds).toFixed(1),
    'of the rate': `${(((calls - throttled) / seconds / rate) * 100).toFixed(1)} %`,
    'turned away': `${((throttled / calls) * 100).toFixed(2)} %`,
    'interactive p50, p99, ms': `${at(0.5)}, ${at(0.99)}`,
    'cards with several tokens': stats.cardsWithSeveralLiveTokens,
    answers: JSON.stringify(answers),
  })
  await schemes.close()
} finally {
  await simulator.kill9()
  rmSync(folder, { recursive: true, force: true })
}
