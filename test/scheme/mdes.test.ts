// The MDES connector against the simulated network, over HTTP: every outcome ends as one of the closed answers, and no
// lost answer ever makes a second token.
import { rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MDES_ERRORS } from '../../src/scheme/mdes-errors.ts'
import { OUTCOMES } from '../../src/simulate/scheme/outcomes.ts'
import { until } from '../support/until.ts'
import {
  card,
  EARLY_MS,
  newId,
  numberedPan,
  openSchemeBundle,
  outcomePan,
  type SchemeBundle,
  SHORT_MS,
  tokenOf,
} from './bundle.ts'

let bundle: SchemeBundle
beforeAll(async () => {
  bundle = await openSchemeBundle()
})
afterAll(() => bundle?.close())

const nothingTaken = (pan: string) => ({ card: card(pan), taken: [] })
let cards = 0
const freshPan = () => numberedPan(cards++)

describe('a card that the network refuses', () => {
  const refused = Object.entries(OUTCOMES).filter(([, { error, decision }]) => error ?? decision === 'DECLINED')

  it.each(refused)('%s ends as the table says and leaves nothing behind', async (pan, { error, decision }) => {
    const before = (await bundle.stats()).tokens.all
    const id = newId()
    const answer = await bundle.mdes.provision(id, card(pan), 'interactive')
    const verdict = error === undefined ? undefined : MDES_ERRORS[error]
    if (decision === 'DECLINED') expect(answer).toEqual({ answer: 'refused', reason: 'card_declined' })
    // If the table doesn't know the code, the call may have had its effect.
    else if (verdict === undefined) expect(answer).toEqual({ answer: 'unknown' })
    else if (verdict.verdict === 'refuse') expect(answer).toEqual({ answer: 'refused', reason: verdict.reason })
    else if (verdict.verdict === 'again') expect(answer).toMatchObject({ answer: 'again', once: verdict.once })
    expect((await bundle.stats()).tokens.all).toBe(before)
    expect(await bundle.mdes.find(id, nothingTaken(pan), 'interactive')).toEqual({ answer: 'done', value: undefined })
  })

  it('covers every sort of verdict', () => {
    const verdicts = refused.map(([, { error }]) => (error === undefined ? 'declined' : MDES_ERRORS[error]?.verdict))
    expect(new Set(verdicts)).toEqual(new Set(['declined', 'refuse', 'again', undefined]))
  })
})

describe('an answer that is lost', () => {
  let hasty: SchemeBundle
  beforeAll(async () => {
    hasty = await openSchemeBundle({ timeoutMs: SHORT_MS })
  })
  afterAll(() => hasty?.close())

  it.each([
    ['after the effect', 2],
    ['by a reset after the effect', 6],
    ['in noise after the effect', 10],
  ])('%s: unknown, and found by the id', async (_, outcome) => {
    const id = newId()
    const pan = outcomePan(outcome)
    expect(await hasty.mdes.provision(id, card(pan), 'interactive')).toEqual({ answer: 'unknown' })
    const found = tokenOf(await hasty.mdes.find(id, nothingTaken(pan), 'interactive'))
    expect(found).toMatchObject({ state: 'ACTIVE', suspendedBy: [] })
    // A token that is older than `since` doesn't belong to this provisioning.
    const later = { ...nothingTaken(pan), since: Date.now() + 60_000 }
    expect(await hasty.mdes.find(id, later, 'interactive')).toEqual({ answer: 'done', value: undefined })
    // The network refuses the repeated task, so the answer stays unknown and no second token is made.
    expect(await hasty.mdes.provision(id, card(pan), 'interactive')).toEqual({ answer: 'unknown' })
    expect(tokenOf(await hasty.mdes.find(id, nothingTaken(pan), 'interactive')).reference).toBe(found.reference)
    expect((await hasty.stats()).cardsWithSeveralLiveTokens).toBe(0)
  })

  it.each([
    ['by silence', 3],
    ['by a reset', 7],
  ])('before the effect, %s: unknown, not found, and done when called again', async (_, outcome) => {
    const id = newId()
    const pan = outcomePan(outcome)
    expect(await hasty.mdes.provision(id, card(pan), 'interactive')).toEqual({ answer: 'unknown' })
    expect(await hasty.mdes.find(id, nothingTaken(pan), 'interactive')).toEqual({ answer: 'done', value: undefined })
    tokenOf(await hasty.mdes.provision(id, card(pan), 'interactive'))
  })

  it('while the network is still at it: again, until it is done', async () => {
    const early = await openSchemeBundle({ timeoutMs: EARLY_MS })
    const pan = outcomePan(4)
    const find = (id: string) => early.mdes.find(id, nothingTaken(pan), 'bulk')
    try {
      // A look that comes late finds the task done.
      const id = await until(async () => {
        const one = newId()
        expect(await early.mdes.provision(one, card(pan), 'bulk')).toEqual({ answer: 'unknown' })
        const found = await find(one)
        if (found.answer === 'again') expect(found.once).toBe(false)
        return found.answer === 'again' && one
      })
      await until(async () => (await find(id)).answer === 'done', { what: 'the task to be done' })
      tokenOf(await find(id))
    } finally {
      await early.close()
    }
  })

  it('of a card with other tokens: found is the one that no other id holds', async () => {
    const pan = outcomePan(2)
    const id = newId()
    const living = tokenOf(await hasty.mdes.find(await lost(pan), nothingTaken(pan), 'interactive'))
    expect(await hasty.mdes.provision(id, card(pan), 'interactive')).toEqual({ answer: 'unknown' })
    const taken = await allLivingBut(pan, id)
    expect(taken).toContain(living.reference)
    const found = tokenOf(await hasty.mdes.find(id, { card: card(pan), taken }, 'interactive'))
    expect(taken).not.toContain(found.reference)
    for (const reference of [...taken, found.reference]) await hasty.mdes.delete(newId(), reference, 'interactive')
    // All tokens are deleted, so none is found.
    expect(await hasty.mdes.find(id, { card: card(pan), taken: [] }, 'interactive')).toEqual({
      answer: 'done',
      value: undefined,
    })
  })

  it('and whose card was erased: unknown remains unknown', async () => {
    const id = await lost(outcomePan(2))
    expect(await hasty.mdes.find(id, { card: undefined, taken: [] }, 'interactive')).toEqual({ answer: 'unknown' })
  })

  async function lost(pan: string): Promise<string> {
    const id = newId()
    await hasty.mdes.provision(id, card(pan), 'interactive')
    return id
  }

  async function allLivingBut(pan: string, id: string): Promise<string[]> {
    const { tokens } = (await (await fetch(`${hasty.simulator.url}/_simulator/tokens`)).json()) as {
      tokens: { reference: string; taskId: string; lastFour: string; state: string }[]
    }
    return tokens
      .filter(one => one.lastFour === pan.slice(-4) && one.taskId !== id && one.state !== 'DEACTIVATED')
      .map(({ reference }) => reference)
  }
})

describe('a failure that passes', () => {
  it.each([
    ['an internal failure', 8, undefined],
    ['a busy network', 9, 1_000],
  ])('%s: again, and then done', async (_, outcome, afterMs) => {
    const id = newId()
    const answer = await bundle.mdes.provision(id, card(outcomePan(outcome)), 'interactive')
    expect(answer).toEqual({ answer: 'again', once: false, afterMs })
    tokenOf(await bundle.mdes.provision(id, card(outcomePan(outcome)), 'interactive'))
  })

  it('an answer that comes twice on a connection is nobody else’s answer', async () => {
    const calls = Array.from({ length: 40 }, async (_, index) => {
      const pan = index % 4 === 0 ? outcomePan(5) : freshPan()
      const token = tokenOf(await bundle.mdes.provision(newId(), card(pan), 'bulk'))
      return { pan, reference: token.reference }
    })
    const made = await Promise.all(calls)
    expect(new Set(made.map(({ reference }) => reference)).size).toBe(made.length)
    const { tokens } = (await (await fetch(`${bundle.simulator.url}/_simulator/tokens`)).json()) as {
      tokens: { reference: string; lastFour: string }[]
    }
    for (const { pan, reference } of made)
      expect(tokens.find(one => one.reference === reference)?.lastFour).toBe(pan.slice(-4))
  })
})

describe('a token', () => {
  it('is told with its number, expiry and PAR', async () => {
    const token = tokenOf(await bundle.mdes.provision(newId(), card(freshPan()), 'interactive'))
    expect(token.number?.reveal()).toMatch(/^5204\d{12}$/)
    expect(token).toMatchObject({ state: 'ACTIVE', expiryMonth: 12, par: expect.stringMatching(/^[0-9A-Z]{29}$/) })
    expect(token.expiryYear).toBeGreaterThan(2_025)
    expect(JSON.stringify(token)).not.toContain('5204')
  })

  it.each([
    ['a number of 19 digits', 13, { number: undefined }],
    ['a PAR in small letters', 14, { par: undefined }],
    ['no PAR', 15, { par: undefined }],
  ])('with %s: that is left out', async (_, outcome, expected) => {
    const id = newId()
    expect(tokenOf(await bundle.mdes.provision(id, card(outcomePan(outcome)), 'interactive'))).toMatchObject({
      state: 'ACTIVE',
      ...expected,
    })
  })

  it('that needs further authentication is INACTIVE', async () => {
    const token = tokenOf(await bundle.mdes.provision(newId(), card(outcomePan(12)), 'interactive'))
    expect(token.state).toBe('INACTIVE')
  })

  it('is suspended, resumed and deleted, each as often as one likes', async () => {
    const { mdes } = bundle
    const { reference } = tokenOf(await mdes.provision(newId(), card(freshPan()), 'interactive'))
    for (const [act, state] of [
      ['suspend', 'SUSPENDED'],
      ['suspend', 'SUSPENDED'],
      ['resume', 'ACTIVE'],
      ['resume', 'ACTIVE'],
      ['delete', 'DEACTIVATED'],
      ['delete', 'DEACTIVATED'],
    ] as const)
      expect(tokenOf(await mdes[act](newId(), reference, 'interactive')).state).toBe(state)
    expect(await mdes.resume(newId(), reference, 'interactive')).toEqual({ answer: 'refused', reason: 'token_state' })
    expect(tokenOf(await mdes.get(newId(), reference, 'interactive')).state).toBe('DEACTIVATED')
  })

  it('that the issuer suspended too is active only when the last suspension is lifted', async () => {
    const { mdes } = bundle
    const { reference } = tokenOf(await mdes.provision(newId(), card(freshPan()), 'interactive'))
    await mdes.suspend(newId(), reference, 'interactive')
    expect(await bundle.control(reference, { do: 'suspend', by: 'ISSUER' })).toBe(200)
    const resumed = { state: 'SUSPENDED', suspendedBy: ['ISSUER'] }
    expect(tokenOf(await mdes.resume(newId(), reference, 'interactive'))).toMatchObject(resumed)
    expect(tokenOf(await mdes.resume(newId(), reference, 'interactive'))).toMatchObject(resumed)
    await bundle.control(reference, { do: 'resume', by: 'ISSUER' })
    expect(tokenOf(await mdes.get(newId(), reference, 'interactive')).state).toBe('ACTIVE')
  })

  it('that nobody knows is refused', async () => {
    for (const act of ['suspend', 'resume', 'delete'] as const)
      expect(await bundle.mdes[act](newId(), 'DSIMMC00', 'bulk')).toEqual({
        answer: 'refused',
        reason: 'token_unknown',
      })
    expect(await bundle.mdes.get(newId(), 'DSIMMC00', 'bulk')).toEqual({ answer: 'refused', reason: 'token_unknown' })
  })
})

describe('the network', () => {
  it('refuses a wrong signature, and a card it can’t open, without effect; both may be mended and called again', async () => {
    const wrongKey = await openSchemeBundle({ mdes: { signingKeyFile: 'decryption.key' } })
    const wrongCertificate = await openSchemeBundle({ mdes: { encryptionCertFile: 'requestor.crt' } })
    try {
      const unsigned = await wrongKey.mdes.provision(newId(), card(freshPan()), 'interactive')
      expect(unsigned).toMatchObject({ answer: 'again', once: false })
      expect((await wrongKey.stats()).counts).toEqual({ calls: 1, wrongSignatures: 1 })
      const unopened = await wrongCertificate.mdes.provision(newId(), card(freshPan()), 'interactive')
      expect(unopened).toMatchObject({ answer: 'again', once: false })
      expect((await wrongCertificate.stats()).tokens.all).toBe(0)
    } finally {
      await wrongKey.close()
      await wrongCertificate.close()
    }
  })

  it('that is away: again, because nothing was sent; and after ten in a row it is left alone', async () => {
    const away = await openSchemeBundle()
    await away.simulator.close()
    for (let call = 0; call < 10; call += 1)
      expect(await away.mdes.get(newId(), 'DSIMMC00', 'bulk')).toEqual({ answer: 'again', once: false })
    const kept = await away.mdes.provision(newId(), card(freshPan()), 'interactive')
    expect(kept).toMatchObject({ answer: 'again', afterMs: expect.any(Number) })
    await away.schemes.close()
    rmSync(away.folder, { recursive: true, force: true })
  })

  it('that has had enough: again, with 429 counted, and the pace falls', async () => {
    const narrow = await openSchemeBundle({ ratePerSecond: 20, mdes: { ratePerSecond: 1_000 } })
    try {
      const answers = await Promise.all(Array.from({ length: 60 }, () => narrow.mdes.get(newId(), 'DSIMMC00', 'bulk')))
      const again = answers.filter(({ answer }) => answer === 'again').length
      expect(again).toBeGreaterThan(0)
      expect(again).toBe((await narrow.stats()).counts['throttled'])
    } finally {
      await narrow.close()
    }
  })

  it('has seen no double provisioning, no wrong signature and no payload that its package opens otherwise', async () => {
    const { counts, tasksWithSeveralTokens, packageDisagreements } = await bundle.stats()
    expect({ tasksWithSeveralTokens, packageDisagreements }).toEqual({
      tasksWithSeveralTokens: 0,
      packageDisagreements: 0,
    })
    expect([counts['wrongSignatures'], counts['replayedSignatures']]).toEqual([undefined, undefined])
  })
})
