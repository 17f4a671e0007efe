// The simulator as a process: it prints settings, kill -9 loses and doubles no token, its rate is used, and the page
// lists every card.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Schemes } from '../../src/scheme/open.ts'
import { checkDigit, OUTCOMES, outcomeOf } from '../../src/simulate/scheme/outcomes.ts'
import {
  card,
  EARLY_MS,
  editSchemeFile,
  newId,
  numberedPan,
  openTestSchemes,
  outcomePan,
  statsOf,
  tokenOf,
} from '../scheme/bundle.ts'
import { type Child, startCommand } from '../support/process.ts'
import { steady } from '../support/until.ts'

interface Running {
  child: Child
  url: string
  schemeFile: string
  address: string
}

let folder: string
let running: Running | undefined
const open: Schemes[] = []
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'simulator-'))
})
afterEach(async () => {
  for (const schemes of open.splice(0)) await schemes.close()
  await running?.child.kill9()
  running = undefined
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function start(data: string, ...words: string[]): Promise<Running> {
  const child = startCommand(['simulate', 'scheme', '--json', '--port', '0', '--data', data, ...words])
  const [printed] = await child.line(/\{[^}]*\}/)
  const { url, TOKENMILL_SCHEME_FILE, TOKENMILL_PRIVATE_HOSTS } = JSON.parse(printed) as Record<string, string>
  editSchemeFile(TOKENMILL_SCHEME_FILE ?? '', {})
  running = { child, url: url ?? '', schemeFile: TOKENMILL_SCHEME_FILE ?? '', address: TOKENMILL_PRIVATE_HOSTS ?? '' }
  return running
}

function connect({ schemeFile, address }: Running) {
  const schemes = openTestSchemes(schemeFile, address)
  open.push(schemes)
  if (schemes.mdes === undefined) throw new Error('the scheme file names no network')
  return schemes.mdes
}

describe('tokenmill simulate scheme', () => {
  it('prints the settings to start tokenmill with, and ends at Ctrl-C', async () => {
    const data = join(folder, 'first')
    const { child, schemeFile, address } = await start(data)
    expect(schemeFile).toBe(join(data, 'scheme.json'))
    expect(address).toMatch(/^127\.0\.0\.1:\d+$/)
    for (const name of ['scheme.json', 'signing.key', 'network.key', 'decryption.key', 'notification.secret'])
      expect(statSync(join(data, name)).mode & 0o777, name).toBe(0o600)
    child.signal('SIGINT')
    expect(await child.exit).toEqual({ code: 0, signal: null })
  })

  it('keeps tokens and keys over kill -9: no card is lost, none is provisioned twice', async () => {
    const data = join(folder, 'kept')
    // A low rate, so that it is killed while calls are made.
    let simulator = await start(data, '--rate', '60')
    editSchemeFile(simulator.schemeFile, { mdes: { tokenNumbers: false } })
    let mdes = connect(simulator)
    const cards = Array.from({ length: 50 }, (_, index) => ({ id: newId(), pan: numberedPan(index) }))
    const done = new Map<string, string>()
    const first = simulator
    await Promise.all(
      cards.map(async ({ id, pan }) => {
        const answer = await mdes.provision(id, card(pan), 'bulk')
        if (answer.answer === 'done') done.set(id, answer.value.reference)
        if (done.size === 12) await first.child.kill9()
      }),
    )
    expect(done.size).toBeLessThan(cards.length)
    simulator = await start(data, '--rate', '2000')
    mdes = connect(simulator)
    // Asks for the result first, and calls again only if there was no effect, as a worker does.
    const resolve = async ({ id, pan }: { id: string; pan: string }) => {
      const found = await mdes.find(id, { card: card(pan), taken: [] }, 'bulk')
      if (found.answer !== 'done') throw new Error(`${id}: ${found.answer}`)
      const known = done.get(id)
      if (known !== undefined) expect(found.value?.reference).toBe(known)
      if (found.value === undefined) tokenOf(await mdes.provision(id, card(pan), 'bulk'))
    }
    await Promise.all(cards.map(resolve))
    expect(await statsOf(simulator.url)).toMatchObject({
      tokens: { all: cards.length, live: cards.length },
      tasksWithSeveralTokens: 0,
      cardsWithSeveralLiveTokens: 0,
    })
    expect(readFileSync(join(data, 'journal.ndjson'), 'utf8')).not.toContain(numberedPan(0))
  })

  it('a task that was under way at kill -9 failed', () =>
    // It is under way for little longer than the call waits.
    steady(500, async () => {
      await running?.child.kill9()
      const data = mkdtempSync(join(folder, 'under-way-'))
      let simulator = await start(data)
      editSchemeFile(simulator.schemeFile, { timeoutMs: EARLY_MS })
      const id = newId()
      const pan = outcomePan(4)
      expect(await connect(simulator).provision(id, card(pan), 'bulk')).toEqual({ answer: 'unknown' })
      await simulator.child.kill9()
      simulator = await start(data)
      const mdes = connect(simulator)
      expect(await mdes.find(id, { card: card(pan), taken: [] }, 'bulk')).toEqual({ answer: 'done', value: undefined })
    }))

  it('is used at about what it allows, and interactive calls don’t wait behind bulk', async () => {
    const simulator = await start(join(folder, 'paced'), '--rate', '40', '--latency', '20')
    editSchemeFile(simulator.schemeFile, { mdes: { tokenNumbers: false } })
    const mdes = connect(simulator)
    const waits: number[] = []
    const cards = Array.from({ length: 160 }, (_, index) => numberedPan(10_000 + index))
    let left = cards.length
    const bulk = Promise.all(
      cards.map(async pan => {
        const id = newId()
        while ((await mdes.provision(id, card(pan), 'bulk')).answer === 'again') {}
        left -= 1
      }),
    )
    // A turn counts for at most a second: the rest of a longer one this process stood still.
    let awake = 0
    while (left > 0) {
      const asked = performance.now()
      await mdes.get(newId(), 'DSIMMC00', 'interactive')
      waits.push(performance.now() - asked)
      await new Promise(resolve => setTimeout(resolve, 100))
      awake += Math.min(1_000, performance.now() - asked)
    }
    await bulk
    const seconds = awake / 1_000
    const { counts, tokens } = await statsOf(simulator.url)
    expect(tokens.live).toBe(cards.length)
    const throttled = counts['throttled'] ?? 0
    // Wide limits, because other tests use the cores, too: after a stall the simulator refuses the calls that have
    // accumulated. The exact law is in test/scheme/aimd.test.ts, in virtual time; bench/scheme.ts shows the figures.
    expect(throttled / (counts['calls'] ?? 1)).toBeLessThan(0.2)
    expect(((counts['calls'] ?? 0) - throttled) / (seconds * 40)).toBeGreaterThan(0.5)
    // Behind bulk an interactive call would wait for all that is left of it, 4 s at first.
    expect(waits.sort((a, b) => a - b)[Math.floor(waits.length / 2)]).toBeLessThan(3_000)
  })

  it('says so in one line where its port is taken', async () => {
    const { address } = await start(join(folder, 'port'))
    const second = startCommand([
      'simulate',
      'scheme',
      '--port',
      address.split(':')[1] ?? '',
      '--data',
      join(folder, 'p2'),
    ])
    expect(await second.exit).toEqual({ code: 1, signal: null })
    expect(second.stderr()).toMatch(/^tokenmill: port \d+ is taken; choose another with --port\n$/)
  })
})

describe('docs/simulator.md', () => {
  const page = readFileSync(new URL('../../docs/simulator.md', import.meta.url), 'utf8')

  it('lists every card with its outcome, and no other', () => {
    const section = page.slice(page.indexOf('## Cards'), page.indexOf('## Control and statistics'))
    const rows = [...section.matchAll(/^\| `(\d{15,16})` +\| (.*?) +\|/gm)].map(([, pan = '', says = '']) => [
      pan,
      says,
    ])
    expect(Object.fromEntries(rows)).toEqual(
      Object.fromEntries(Object.entries(OUTCOMES).map(([pan, { says }]) => [pan, says])),
    )
  })

  it('lists cards that pass the Luhn check', () => {
    for (const pan of Object.keys(OUTCOMES)) expect(checkDigit(pan.slice(0, -1)), pan).toBe(pan.at(-1))
    expect(outcomeOf('5555555555554444')).toEqual({ says: 'success' })
  })

  it('names the files of its folder', () => {
    const data = join(folder, 'first')
    for (const name of ['scheme.json', 'journal.ndjson', 'signing.key', 'decryption.key']) {
      expect(existsSync(join(data, name)), name).toBe(true)
      expect(page).toContain(`\`${name}\``)
    }
  })
})
