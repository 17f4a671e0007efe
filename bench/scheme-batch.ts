// Cases (h) and (i): real workers provision the scheme tokens of a batch at a simulated network, which allows a number
// of calls per second and answers further calls with 429. Meanwhile single `scheme-token` jobs come for other tokens.
// In (h) all bulk processes work on the batch; in (i) only one does, and another idles.
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Client } from '../producers/client.ts'
import { tokenBatch } from '../producers/token-batch.ts'
import type { RecordKind } from '../src/job/catalogue.ts'
import type { RecordResult } from '../src/job/outcome.ts'
import { CHUNK } from '../src/job/token-batch.ts'
import { checkDigit } from '../src/simulate/scheme/outcomes.ts'
import type { Installation } from '../test/support/installation.ts'
import { type Child, startCommand } from '../test/support/process.ts'
import type { EngineName, Place } from './place.ts'

export interface SchemeRunOptions {
  cards: number
  /** Calls per second that the network allows and that are granted to the installation. */
  rate: number
  latencyMs: number
  /** How many bulk processes work on the batch; if it is 1, another process idles. */
  busy: 1 | 2
}

export interface SchemeRun {
  seconds: number
  callsPerSecond: number
  /** The share of the allowed calls that were used. */
  used: number
  /** The share of all calls that were answered with 429. */
  turnedAway: number
  /** Single jobs: from sending to answer, in ms. */
  interactive: { jobs: number; p50: number; p99: number; most: number }
  /** Records and jobs without a scheme token. */
  others: number
  cardsWithSeveralTokens: number
}

const INTERACTIVE_MS = 250
/** Single jobs that are sent before measuring begins. */
const WARM = 20
/** One call to make the token, one for its number. */
const CALLS_A_CARD = 2
/** More than the longest run needs. */
const SINGLES_MAX = 1_000

interface Stats {
  counts: Record<string, number>
  cardsWithSeveralLiveTokens: number
}

export async function runSchemeBatch(
  place: Place,
  engine: EngineName,
  { cards, rate, latencyMs, busy }: SchemeRunOptions,
): Promise<SchemeRun> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-scheme-'))
  const words = ['--port', '0', '--data', folder, '--rate', String(rate), '--latency', String(latencyMs)]
  const simulator = startCommand(['simulate', 'scheme', '--json', ...words])
  let installation: Installation | undefined
  try {
    const { url = '', ...settings } = await settingsOf(simulator)
    installation = await place.open(engine, settings)
    await installation.startWorkers({ processes: busy })
    if (busy === 1) await installation.startWorkers({ roles: ['bulk'], env: { TOKENMILL_KINDS: 'transaction-batch' } })
    const client = await installation.connect({ replyTo: 'scheme' })
    const singles = Math.min(SINGLES_MAX, Math.ceil((cards / rate) * CALLS_A_CARD * 4) + 100)
    const made = await send(client, installation, 'token-create', cardsOf(cards + singles))
    const ids = made.map(({ reuse_token }) => String(reuse_token))
    const statsOf = async () => (await (await fetch(`${url}/_simulator/stats`)).json()) as Stats
    const singleIds = ids.slice(cards)
    for (const id of singleIds.splice(0, WARM)) await client.call('scheme-token', { id, action: 'ACTIVATE' })
    const before = await statsOf()
    const began = performance.now()
    const single = keepAsking(client, singleIds)
    const actions = ids.slice(0, cards).map(id => ({ id, action: 'ACTIVATE' }))
    const records = await send(client, installation, 'scheme-token', actions)
    const seconds = (performance.now() - began) / 1_000
    const after = await statsOf()
    const { times, others } = await single.stop()
    const counted = (name: string) => (after.counts[name] ?? 0) - (before.counts[name] ?? 0)
    const calls = counted('calls')
    const callsPerSecond = (calls - counted('throttled')) / seconds
    const sorted = times.sort((a, b) => a - b)
    const at = (part: number) => Math.round(sorted[Math.floor((sorted.length - 1) * part)] ?? 0)
    return {
      seconds,
      callsPerSecond,
      used: callsPerSecond / rate,
      turnedAway: counted('throttled') / calls,
      interactive: { jobs: times.length, p50: at(0.5), p99: at(0.99), most: at(1) },
      others: others + records.filter(({ outcome }) => outcome !== 'UPDATED').length,
      cardsWithSeveralTokens: after.cardsWithSeveralLiveTokens,
    }
  } finally {
    await installation?.close()
    await simulator.kill9()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function settingsOf(simulator: Child): Promise<Record<string, string>> {
  const [printed] = await simulator.line(/\{[^}]*\}/)
  return JSON.parse(printed) as Record<string, string>
}

function cardsOf(count: number): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, index) => {
    const body = `555555${String(index).padStart(9, '0')}`
    return { card: { cardNumber: body + checkDigit(body), expiryMonth: 12, expiryYear: 2031 } }
  })
}

/** Sends a batch in chunks of the default size. Returns the results of its records in order. */
async function send(
  client: Client,
  { credentials, scope }: Installation,
  recordKind: RecordKind,
  requests: readonly Record<string, unknown>[],
): Promise<RecordResult[]> {
  const captureKey = credentials.captureKeys.jwe
  if (!captureKey) throw new Error('these credentials hold no JWE key')
  const acceptedAt = Math.floor(Date.now() / 1000)
  const plan = { batchId: randomUUID(), recordKind, tokenScope: scope, acceptedAt, captureKey }
  async function* asks() {
    const records = requests.map((request, index) => JSON.stringify({ line: index + 1, request }))
    for (let number = 0; number * CHUNK.recordsDefault < records.length; number += 1) {
      const lines = records.slice(number * CHUNK.recordsDefault, (number + 1) * CHUNK.recordsDefault)
      const ask = await tokenBatch(client.clientId, plan, { lines, number })
      if ('refused' in ask) throw new Error(`refused: ${ask.reason}`)
      yield ask
    }
  }
  const results: RecordResult[] = []
  for await (const { result } of client.bulk(asks())) {
    if (!result.records) throw new Error(`a chunk failed: ${JSON.stringify(result.error)}`)
    results.push(...result.records)
  }
  return results.sort((a, b) => a.line - b.line)
}

/** Sends a job for each of `ids`, at an even pace, whether or not others are answered. */
function keepAsking(client: Client, ids: readonly string[]) {
  const times: number[] = []
  const answers: Promise<void>[] = []
  let others = 0
  let stopped = false
  const began = performance.now()
  const asking = (async () => {
    for (const [index, id] of ids.entries()) {
      const early = began + index * INTERACTIVE_MS - performance.now()
      if (early > 0) await pause(early)
      if (stopped) return
      const asked = performance.now()
      const answer = client.call('scheme-token', { id, action: 'ACTIVATE' }, { timeoutMs: 60_000 })
      answers.push(
        answer.then(({ status }) => {
          times.push(performance.now() - asked)
          if (status !== 'SUCCEEDED') others += 1
        }),
      )
    }
  })()
  return {
    async stop() {
      stopped = true
      await asking
      await Promise.all(answers)
      return { times, others }
    },
  }
}
