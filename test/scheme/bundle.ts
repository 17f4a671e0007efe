// Starts a simulated network and a connector to it, over HTTP on this machine.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLog } from '../../src/log.ts'
import { openSchemes, type Schemes } from '../../src/scheme/open.ts'
import type { ProviderToken, ProvisionCard, SchemeProvider } from '../../src/scheme/provider.ts'
import { Secret } from '../../src/secret.ts'
import { checkDigit } from '../../src/simulate/scheme/outcomes.ts'
import { openSchemeSimulator, type SchemeSimulator } from '../../src/simulate/scheme/scheme.ts'

export interface Stats {
  counts: Record<string, number>
  tokens: { all: number; live: number }
  tasksWithSeveralTokens: number
  cardsWithSeveralLiveTokens: number
  thirdParty: { all: number; live: number; cardsWithSeveralLiveTokens: number }
  packageDisagreements: number
}

export interface SchemeBundle {
  folder: string
  simulator: SchemeSimulator
  schemes: Schemes
  mdes: SchemeProvider
  stats(): Promise<Stats>
  /** Does something as the issuer. */
  control(reference: string, deed: Record<string, unknown>): Promise<number>
  close(): Promise<void>
}

export interface SchemeBundleOptions {
  ratePerSecond?: number
  latencyMs?: number
  /** How long an answer is awaited, in ms (10,000). */
  timeoutMs?: number
  /** Changes to the scheme file's `mdes`. */
  mdes?: Record<string, unknown>
  notifyUrl?: string
}

/** The time-out in tests of lost answers, in ms. */
export const SHORT_MS = 3_000

/** The time-out of a call that ends while the network is still at it, in ms. */
export const EARLY_MS = 800

export async function openSchemeBundle(options: SchemeBundleOptions = {}): Promise<SchemeBundle> {
  const folder = mkdtempSync(join(tmpdir(), 'scheme-'))
  const simulator = await openSchemeSimulator({
    host: '127.0.0.1',
    port: 0,
    folder,
    ratePerSecond: options.ratePerSecond ?? 2_000,
    latencyMs: options.latencyMs ?? 0,
    notifyUrl: options.notifyUrl,
  })
  editSchemeFile(simulator.schemeFile, options)
  const schemes = openTestSchemes(simulator.schemeFile, simulator.address)
  if (schemes.mdes === undefined) throw new Error('the scheme file names no network')
  return {
    folder,
    simulator,
    schemes,
    mdes: schemes.mdes,
    stats: () => statsOf(simulator.url),
    control: async (reference, deed) =>
      (await fetch(`${simulator.url}/_simulator/tokens/${reference}`, post(deed))).status,
    close: async () => {
      await schemes.close()
      await simulator.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function editSchemeFile(file: string, { timeoutMs = 10_000, mdes = {} }: SchemeBundleOptions): void {
  const json = JSON.parse(readFileSync(file, 'utf8')) as {
    mdes: Record<string, unknown>
    thirdParties: Record<string, Record<string, unknown>>
  }
  Object.assign(json.mdes, { timeoutMs }, mdes)
  for (const one of Object.values(json.thirdParties)) one['timeoutMs'] = timeoutMs
  writeFileSync(file, JSON.stringify(json))
}

export function openTestSchemes(file: string, address: string): Schemes {
  return openSchemes({ file, privateHosts: [address], log: openLog('silent'), clock: Date.now })
}

export async function statsOf(url: string): Promise<Stats> {
  return (await (await fetch(`${url}/_simulator/stats`)).json()) as Stats
}

export function post(body: unknown): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

export function card(pan: string): ProvisionCard {
  return { pan: new Secret(pan), expiryMonth: 12, expiryYear: 2030, cardHolderName: 'TEST CARD' }
}

/** Further cards of the test range 555555. */
export function numberedPan(index: number): string {
  const body = `555555${String(index).padStart(9, '0')}`
  return body + checkDigit(body)
}

/** Our own outcome cards, by the number of the outcome in docs/simulator.md. */
export function outcomePan(number: number): string {
  const body = `5123450000010${String(number).padStart(2, '0')}`
  return body + checkDigit(body)
}

let ids = 0
export const newId = () => `test-${process.pid}-${Date.now()}-${ids++}`

/** The token of an answer that must be one. */
export function tokenOf(answer: { answer: string; value?: ProviderToken | undefined }): ProviderToken {
  if (answer.answer !== 'done' || answer.value === undefined) throw new Error(`no token: ${answer.answer}`)
  return answer.value
}
