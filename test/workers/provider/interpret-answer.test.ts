// What a provider's answer to a job's call means for row, intent and job, without a store or a network.
import { describe, expect, it } from 'vitest'
import { Fault, refuse } from '../../../src/errors.ts'
import type { ProviderToken } from '../../../src/scheme/provider.ts'
import type { StoredScheme } from '../../../src/store/provider/scheme-row.ts'
import type { SchemeCall } from '../../../src/token/scheme.ts'
import type { CallAnswer } from '../../../workers/provider/call-provider.ts'
import { ABSENT_MAX, AGAIN_MS, interpretAnswer } from '../../../workers/provider/interpret-answer.ts'
import { Postponed } from '../../../workers/work.ts'

const NOW = 1_000_000
const ROW: StoredScheme = {
  provisionId: 'p',
  tokenId: 't',
  tokenScope: 's',
  clientId: 'c',
  provider: 'mdes',
  current: true,
  background: false,
  state: 'PENDING',
  reference: null,
  referenceSealed: null,
  referenceVersion: null,
  suspendedBy: [],
  lastFour: null,
  expiryMonth: null,
  expiryYear: null,
  par: null,
  refusal: null,
  retiredAt: null,
  version: 1,
  sealed: null,
  sealVersion: null,
  card: Buffer.from('sealed'),
  cardVersion: 1,
  asked: 'PROVISION',
  lastIntent: 'i',
  lease: 'l',
  dueAt: NOW,
  attempts: 1,
  checkedAt: null,
  thirdParty: false,
  cards: [],
  createdAt: 0,
  updatedAt: 0,
}
const TOKEN: ProviderToken = {
  reference: 'ref',
  state: 'ACTIVE',
  suspendedBy: [],
  number: undefined,
  expiryMonth: 12,
  expiryYear: 2031,
  par: undefined,
}
const ring = {
  sealNetworkToken: () => {
    throw new Error('no answer here names a number')
  },
  sealReference: () => ({ sealed: Buffer.from('sealed'), keyVersion: 1 }),
}

function interpret(answer: CallAnswer, row: Partial<StoredScheme> = {}, call: SchemeCall = 'PROVISION') {
  const refusalOf = (denial: string) =>
    refuse(denial === 'no_answer' ? 'scheme_no_answer' : 'scheme_card_declined', 'f')
  return interpretAnswer({ row: { ...ROW, ...row }, call, answer, refusalOf }, { ring, clock: () => NOW })
}

describe('an answer', () => {
  it('with a token ends call and intent, and erases the card', () => {
    const { update, end, intent } = interpret({ answer: 'token', token: TOKEN })
    expect(update).toMatchObject({
      state: 'ACTIVE',
      reference: 'ref',
      card: null,
      asked: null,
      dueAt: null,
      attempts: 0,
    })
    expect([end, intent.state]).toEqual(['done', 'DONE'])
  })

  it('that refuses a provisioning leaves a row without a token', () => {
    const { update, intent } = interpret({ answer: 'refused', reason: 'card_declined' })
    expect(update).toMatchObject({ state: 'VOID', refusal: 'card_declined', card: null })
    expect(intent).toEqual({ state: 'REFUSED', refusal: 'card_declined' })
  })

  it('that refuses a call about a token makes its row due at once', () => {
    const { update, intent } = interpret({ answer: 'refused', reason: 'token_state' }, { state: 'ACTIVE' }, 'SUSPEND')
    expect(update).toMatchObject({ state: 'ACTIVE', asked: null, dueAt: NOW })
    expect(intent.state).toBe('REFUSED')
  })

  it('that names another provisioning’s token is a refusal, unless that token is being deleted', () => {
    expect(interpret({ answer: 'duplicate', isRetired: false })).toMatchObject({
      update: { state: 'VOID', refusal: null },
      intent: { state: 'REFUSED', refusal: 'token_taken' },
    })
    const { end, intent } = interpret({ answer: 'duplicate', isRetired: true })
    expect(end).toBeInstanceOf(Postponed)
    expect(intent.state).toBe('INTENDED')
  })

  it('that is unknown keeps what was asked, and the row is due soon', () => {
    const { update, end, intent } = interpret({ answer: 'unknown', afterMs: undefined })
    expect(update).toMatchObject({ asked: 'PROVISION', card: ROW.card, dueAt: NOW + AGAIN_MS })
    expect(end).toBeInstanceOf(Fault)
    expect(intent.state).toBe('INTENDED')
  })

  it('that says nothing of the card is not counted towards those that are final if they come again', () => {
    const kept = interpret({ answer: 'no-effect', afterMs: 100 }, { attempts: 1 })
    expect(kept.update.attempts).toBe(0)
    const first = interpret({ answer: 'no-effect', afterMs: 100, isFinalTwice: true }, { attempts: 1 })
    expect([first.update.attempts, first.intent.state]).toEqual([1, 'INTENDED'])
  })

  it.each([
    ['a first one that is final when repeated', { isFinalTwice: true }, 1, 'INTENDED'],
    ['a second one that is final when repeated', { isFinalTwice: true }, 2, 'REFUSED'],
    ['one without a token after few calls', { isAbsent: true } as const, ABSENT_MAX, 'INTENDED'],
    ['one without a token after many calls', { isAbsent: true } as const, ABSENT_MAX + 1, 'REFUSED'],
    ['one that says no more after many calls', {}, ABSENT_MAX + 1, 'INTENDED'],
  ])('without an effect: %s', (_, more, attempts, state) => {
    const { update, intent } = interpret({ answer: 'no-effect', afterMs: undefined, ...more }, { attempts })
    expect(intent.state).toBe(state)
    expect(update.state).toBe(state === 'REFUSED' ? 'VOID' : 'PENDING')
  })
})
