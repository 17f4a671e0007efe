// The state that all parts of the simulator share: tokens, counters, and notifications. HTTP requests are answered
// elsewhere.
import { randomBytes, randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type Outbound, openOutbound } from '../../outbound.ts'
import type { Journal, SimulatedToken } from './journal.ts'
import { type SimulatorKeys, TOKEN_REQUESTOR_ID } from './keys.ts'
import { checkDigit, type Outcome } from './outcomes.ts'
import type { Security } from './security.ts'

export interface SimulatorState {
  keys: SimulatorKeys
  journal: Journal
  security: Security
  count(name: string): void
  counts(): Record<string, number>
  /** The URL to which notifications are sent; undefined: none are sent. */
  notifyUrl: string | undefined
  /** Notifies the requestor of a token's current state, `times` times. Never throws; gives up after a while. */
  notify(token: SimulatedToken, reason: string, times?: number): Promise<void>
  /** Runs `act` after `ms`, unless the simulator is closed by then. */
  later(ms: number, act: () => Promise<void>): void
  close(): Promise<void>
}

const NOTIFY_TRIES = 5

export function openSimulatorState(keys: SimulatorKeys, journal: Journal, security: Security): SimulatorState {
  const counted = new Map<string, number>()
  const timers = new Set<NodeJS.Timeout>()
  const running = new Set<Promise<void>>()
  let outbound: { origin: string; outbound: Outbound } | undefined
  let closed = false
  const count = (name: string) => {
    counted.set(name, (counted.get(name) ?? 0) + 1)
  }

  function reach(url: string): Outbound {
    const { host: origin } = new URL(url)
    if (outbound?.origin === origin) return outbound.outbound
    outbound = { origin, outbound: openOutbound({ privateHosts: [origin], connections: 4 }) }
    return outbound.outbound
  }

  async function post(url: string, body: string): Promise<boolean> {
    const request = {
      method: 'POST' as const,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${keys.notificationSecret}` },
      body,
      timeoutMs: 5_000,
      bytesMax: 65_536,
    }
    return await reach(url)
      .request(url, request)
      .then(({ status }) => status >= 200 && status < 300)
      .catch(() => false)
  }

  const state: SimulatorState = {
    keys,
    journal,
    security,
    count,
    counts: () => Object.fromEntries(counted),
    notifyUrl: undefined,
    notify: async (token, reason, times = 1) => {
      const body = JSON.stringify({
        responseHost: 'scheme.simulator',
        requestId: randomBytes(12).toString('hex'),
        encryptedPayload: security.encrypt({
          tokens: [{ ...describe(token), tokenRequestorId: TOKEN_REQUESTOR_ID, eventReasonCode: reason }],
        }),
      })
      for (let time = 0; time < times; time += 1) {
        let told = false
        for (let attempt = 0; attempt < NOTIFY_TRIES && !told && !closed && state.notifyUrl; attempt += 1) {
          if (attempt > 0) await pause(200 * attempt)
          told = await post(state.notifyUrl, body)
        }
        count(told ? 'notified' : 'notNotified')
      }
    },
    later: (ms, act) => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        const done = act().catch(() => {
          count('failures')
        })
        running.add(done)
        void done.finally(() => running.delete(done))
      }, ms)
      timers.add(timer)
    },
    close: async () => {
      closed = true
      for (const timer of timers) clearTimeout(timer)
      await Promise.all(running)
      await outbound?.outbound.close()
      await journal.close()
    },
  }
  return state
}

/** A token in the form in which MDES describes it. */
export function describe(token: SimulatedToken): Record<string, unknown> {
  return {
    tokenUniqueReference: token.reference,
    status: token.state,
    ...(token.state === 'SUSPENDED' ? { suspendedBy: token.suspendedBy } : {}),
    statusTimestamp: new Date(token.at).toISOString(),
    tokenInfo: {
      tokenPanSuffix: token.number.slice(-4),
      accountPanPrefix: token.bin,
      accountPanSuffix: token.lastFour,
      tokenExpiry: token.expiry,
      accountPanExpiry: token.cardExpiry,
      dsrpCapable: 'true',
      tokenAssuranceLevel: 1,
    },
  }
}

interface MadeCard {
  taskId: string
  pan: string
  /** The expiry, MMYY. */
  expiry: string
}

export function makeToken(state: SimulatorState, { taskId, pan, expiry }: MadeCard, outcome: Outcome): SimulatedToken {
  const digits = outcome.digits ?? 16
  const body = `5204${Array.from({ length: digits - 5 }, () => randomInt(10)).join('')}`
  const card = state.security.fingerprint(pan)
  return {
    reference: `DSIMMC${randomBytes(21).toString('hex')}`,
    taskId,
    card,
    bin: pan.slice(0, 6),
    lastFour: pan.slice(-4),
    number: body + checkDigit(body),
    expiry: `12${String((new Date().getUTCFullYear() + 4) % 100).padStart(2, '0')}`,
    cardExpiry: expiry,
    par: parOf(card, outcome),
    state: outcome.decision === 'REQUIRE_ADDITIONAL_AUTHENTICATION' ? 'INACTIVE' : 'ACTIVE',
    suspendedBy: [],
    at: Date.now(),
  }
}

/** The card's PAR: 4 characters for the BIN controller and 25 of a hash of the card. */
function parOf(card: string, outcome: Outcome): string | undefined {
  if (outcome.par === 'none') return undefined
  const par = `5001${card.slice(0, 25).toUpperCase()}`
  return outcome.par === 'malformed' ? par.toLowerCase() : par
}
