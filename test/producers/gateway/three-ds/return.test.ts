// The shopper's return from a challenge, without a server: form of the return → what the shopper sees, what the caller
// learns. The ids decide; the outcome is always the one that the directory server sent.
import { randomUUID } from 'node:crypto'
import fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import type { GatewayApp } from '../../../../producers/gateway/app.ts'
import { RETURN, type ThreeDsDeps } from '../../../../producers/gateway/three-ds/deps.ts'
import { answerReturn, resultRoutes } from '../../../../producers/gateway/three-ds/results.ts'
import { Fault } from '../../../../src/errors.ts'
import { Secret } from '../../../../src/secret.ts'
import { applyAnswer, applyResult } from '../../../../src/three-ds/apply-message.ts'
import { ARes, RReq } from '../../../../src/three-ds/messages.ts'
import type { FinalOutcome } from '../../../../src/three-ds/outcome.ts'
import type { Ports } from '../../../../src/three-ds/ports.ts'
import { isProblem } from '../../../../src/three-ds/problem.ts'
import type { Authentication } from '../../../../src/three-ds/record.ts'
import { validateJwt } from '../../../../src/three-ds/validate.ts'
import { peekAudience, sign, verify } from '../../../../src/vault/three-ds-jwt.ts'
import { CALLER, CARD, makeContract, makeRecord } from '../../../three-ds/samples.ts'
import { silent } from '../../bundle.ts'

const NOW = 1_800_000_000_000
const VERSIONS = ['2.1.0', '2.2.0', '2.3.1'] as const
type Version = (typeof VERSIONS)[number]

/** A challenge, ended by a result of this outcome or not yet ended, and the service as far as a return needs it. */
function challenged(version: Version, outcome: FinalOutcome | undefined) {
  const contract = makeContract('https://ds.example')
  const jti = randomUUID()
  const begun = makeRecord({ contractId: contract.contractId, jti })
  const ids = { threeDSServerTransID: begun.transactionId, acsTransID: randomUUID(), dsTransID: randomUUID() }
  const message = { ...ids, messageVersion: version }
  const ares = ARes.parse({ ...message, messageType: 'ARes', transStatus: 'C', acsURL: 'https://acs.example/' })
  const pending = applyAnswer(begun, ares, { now: NOW, windowSize: '05', pan: new Secret(CARD.Y) }).record
  if (!pending) throw new Error('a challenge')
  const record =
    outcome === undefined
      ? pending
      : ended(pending, RReq.parse({ ...message, messageType: 'RReq', transStatus: outcome }))
  let stored: Authentication = record
  const ports = {
    authentications: {
      find: async (id: string) => (id === stored.authenticationId ? stored : undefined),
      findByTransaction: async (id: string) => (id === stored.transactionId ? stored : undefined),
      save: async (next: Authentication) => {
        stored = next
        return true
      },
      saveWithJwt: async (next: Authentication | undefined) => {
        stored = next ?? stored
        return 'saved'
      },
    },
    contracts: { find: async (id: string) => (id === contract.contractId ? contract : undefined) },
    jwts: {
      find: async () => ({ jti, contractId: contract.contractId, issuedAt: NOW, usedAt: null, authenticationId: null }),
    },
    jwt: { sign, verify, peekAudience },
    clock: () => NOW,
    newUuid: randomUUID,
  } as unknown as Ports
  return { ports, record, ids, message, contract, stored: () => stored }
}

function ended(pending: Authentication, { transStatus }: RReq): Authentication {
  const { record } = applyResult(pending, { outcome: transStatus }, NOW)
  if (!record) throw new Error('an end')
  return record
}

type Challenged = ReturnType<typeof challenged>

/** What the shopper sees, and what the caller learns from the JWT that the page holds. */
async function comeBack({ ports, record, contract }: Challenged, form: unknown) {
  const { status, page } = await answerReturn(ports, form)
  const html = page.html('nonce')
  const title = /<title>([^<]*)</.exec(html)?.[1]
  const jwt = /name="jwt" value="([^"]*)"/.exec(html)?.[1]
  const body = { authentication_id: record.authenticationId, jwt, threeds_contract_id: contract.contractId }
  const validated = jwt === undefined ? undefined : await validateJwt(ports, CALLER, body)
  const learned =
    validated === undefined || isProblem(validated) ? validated : validated.answer.validation_result['pares_status']
  return { status, title, learned }
}

const SHOP = 'Returning to the shop'
const WAITING = { status: 200, title: 'One moment', learned: undefined }
const STRANDED = { status: 400, title: 'Nothing to return to', learned: undefined }

const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64')
const base64url = (text: string) => Buffer.from(text).toString('base64url')
const form = (cres: string) => new URLSearchParams({ cres }).toString()
/** Posts the text as it is, as a server does that forgets to escape it. */
const raw = (cres: string) => `cres=${cres}`

/** A message whose base64 has both characters that the alphabets write differently. */
const odd = (message: object) => ({ ...message, errorDetail: '>>>>>>??????~~~~~~üüü' })

type Make = (sent: Record<string, string>) => unknown
const json =
  (change: (sent: Record<string, string>) => object): Make =>
  sent =>
    form(base64url(JSON.stringify(change(sent))))
const { stringify } = JSON

/** Each form in which the return is understood. `sent`: a CRes as the standard has it. */
const UNDERSTOOD: Record<string, Make> = {
  'base64url without padding': sent => form(base64url(stringify(sent))),
  'base64url with padding': sent => form(`${base64url(stringify(sent))}==`),
  'base64 with the other alphabet': sent => form(base64(stringify(odd(sent)))),
  'base64url with the other alphabet': sent => form(base64url(stringify(odd(sent)))),
  'base64 with more padding than it needs': sent => form(`${base64(stringify(sent))}===`),
  'base64 with less padding than it needs': sent => form(base64(`${stringify(sent)} `.padEnd(301)).replace(/=+$/, '')),
  'a plus that was posted unescaped': sent => raw(base64(stringify(odd(sent)))),
  'a plus that became a blank': sent => ({ cres: base64(stringify(odd(sent))).replaceAll('+', ' ') }),
  'escaped twice': sent => form(encodeURIComponent(base64(stringify(odd(sent))))),
  'lines of 76 characters': sent => form(base64(stringify(sent)).replace(/.{76}/g, '$&\r\n')),
  'lines that are indented': sent => form(base64(stringify(sent)).replace(/.{64}/g, '$&\n    ')),
  'white space at both ends': sent => form(` \t${base64url(stringify(sent))}\r\n`),
  'JSON with white space, a byte order mark and a NUL': sent =>
    form(base64(`\uFEFF ${stringify(sent, null, 2)}\r\n\0`)),
  'JSON that isn’t UTF-8': sent =>
    form(base64(Buffer.from(stringify({ ...sent, errorDetail: 'gescheitert für Sie' }), 'latin1'))),
  'JSON with a line break within a text': sent =>
    form(base64url(stringify({ ...sent, errorDetail: 'a\nb' }).replace('\\n', '\n'))),
  'JSON that isn’t encoded': sent => form(stringify(odd(sent))),
  'another spelling of the field': sent => `CRes=${base64url(stringify(sent))}&threeDSSessionData=c2Vzc2lvbg`,
  'a field that JSON holds': sent => ({ cres: base64url(stringify(sent)) }),
  'ids in upper case': json(sent => ({ ...sent, acsTransID: sent['acsTransID']?.toUpperCase() })),
  'the two ids alone': json(({ threeDSServerTransID, acsTransID }) => ({ threeDSServerTransID, acsTransID })),
  'no version': json(({ messageVersion: _, ...sent }) => sent),
  'no status': json(({ transStatus: _, ...sent }) => sent),
  'no type': json(({ messageType: _, ...sent }) => sent),
  'a later version': json(sent => ({ ...sent, messageVersion: '2.4.0' })),
  'a version of another form': json(sent => ({ ...sent, messageVersion: 2.1 })),
  'a status of another version': json(sent => ({ ...sent, transStatus: 'D' })),
  'an unknown status': json(sent => ({ ...sent, transStatus: null })),
  'members of an app’s CRes': json(sent => ({ ...sent, acsCounterAtoS: '001', challengeCompletionInd: 'N' })),
  'members that nobody knows': json(sent => ({ ...sent, messageExtension: [{ id: 'A1', data: {} }], x: 1 })),
  'long extensions': json(sent => ({ ...sent, messageExtension: Array(10).fill({ data: 'x'.repeat(8_059) }) })),
  'an Erro message': json(({ transStatus: _, ...sent }) => erroOf(sent)),
  'an Erro message that lacks its code': json(({ threeDSServerTransID, acsTransID }) => ({
    messageType: 'Erro',
    threeDSServerTransID,
    acsTransID,
  })),
  'an Erro message without the server’s id': json(({ acsTransID: _, ...sent }) => erroOf(sent)),
  'an Erro message in a field of its own': sent => `cres=&error=${base64url(stringify(erroOf(sent)))}`,
}

function erroOf(sent: Record<string, string>): object {
  const error = { errorCode: '203', errorComponent: 'A', errorDescription: 'wrong', errorDetail: 'x' }
  return { ...sent, messageType: 'Erro', ...error, errorMessageType: 'CReq' }
}

/** Each form that names no authentication, or another one's. */
const REFUSED: Record<string, Make> = {
  nothing: () => undefined,
  'an empty form': () => '',
  'an empty field': () => 'cres=',
  'no base64': () => form('"><script>alert(1)</script>'),
  'no JSON': () => form(base64('nonsense')),
  'JSON of another kind': () => form(base64('[null]')),
  'half of it': sent => form(base64url(stringify(sent)).slice(0, 40)),
  'no id of the authentication': json(({ threeDSServerTransID: _, ...sent }) => sent),
  'another authentication’s id': json(sent => ({ ...sent, threeDSServerTransID: randomUUID() })),
  'an id that is none': json(sent => ({ ...sent, threeDSServerTransID: `${sent['threeDSServerTransID']}0` })),
  'no id of the server': json(({ acsTransID: _, ...sent }) => sent),
  'another server’s id': json(sent => ({ ...sent, acsTransID: randomUUID() })),
  'the ids the wrong way round': json(sent => ({
    ...sent,
    threeDSServerTransID: sent['acsTransID'],
    acsTransID: sent['threeDSServerTransID'],
  })),
  'an Erro message with another server’s id': json(sent => erroOf({ ...sent, acsTransID: randomUUID() })),
  'an Erro message with an id of the server that is none': json(sent => erroOf({ ...sent, acsTransID: 'unknown' })),
  'an Erro message without ids': json(() => erroOf({})),
}

describe.each(VERSIONS)('the shopper who returns from a challenge of version %s', version => {
  const cresOf = ({ ids: { dsTransID: _, ...ids } }: Challenged, transStatus = 'Y') => ({
    ...ids,
    messageType: 'CRes',
    messageVersion: version,
    transStatus,
    ...(version === '2.1.0' ? { challengeCompletionInd: 'Y' } : {}),
  })

  it.each(Object.entries(UNDERSTOOD))('with %s sees the shop, and the caller learns the outcome', async (_, make) => {
    const session = challenged(version, 'Y')
    expect(await comeBack(session, make(cresOf(session)))).toEqual({ status: 200, title: SHOP, learned: 'Y' })
  })

  it.each(Object.entries(UNDERSTOOD))('with %s before the result waits, and nothing ends', async (_, make) => {
    const session = challenged(version, undefined)
    expect(await comeBack(session, make(cresOf(session)))).toEqual(WAITING)
    expect(session.stored()).toBe(session.record)
  })

  it.each(Object.entries(REFUSED))('with %s sees no shop, and the caller learns nothing', async (_, make) => {
    for (const outcome of ['Y', undefined] as const) {
      const session = challenged(version, outcome)
      expect(await comeBack(session, make(cresOf(session)))).toEqual(STRANDED)
      expect(session.stored()).toBe(session.record)
    }
  })

  it('brings the result’s outcome, whatever the browser says', async () => {
    for (const outcome of ['Y', 'A', 'N', 'U', 'R'] as const)
      for (const said of ['Y', 'N', 'U']) {
        const session = challenged(version, outcome)
        const sent = cresOf(session, said)
        for (const message of [sent, erroOf(sent)])
          expect(await comeBack(session, form(base64url(stringify(message))))).toMatchObject({ learned: outcome })
      }
  })
})

it('the waiting page repeats the message so that it is understood again', async () => {
  const session = challenged('2.2.0', undefined)
  const sent = stringify(odd({ ...session.message, messageType: 'CRes' }))
  const { page } = await answerReturn(session.ports, raw(base64(sent)))
  const repeated = /name="cres" value="([^"]*)"/.exec(page.html('nonce'))?.[1] ?? ''
  expect(await comeBack(session, form(repeated))).toEqual(WAITING)
})

describe('the return of a shopper', () => {
  it('of a challenge whose time is over ends it, and brings that outcome', async () => {
    const session = challenged('2.2.0', undefined)
    Object.assign(session.ports, { clock: () => NOW + 31 * 60_000 })
    const cres = { messageType: 'CRes', messageVersion: '2.2.0', ...session.ids, transStatus: 'Y' }
    const back = await comeBack(session, raw(base64url(stringify(cres))))
    expect(back).toMatchObject({ status: 200, title: SHOP })
    expect([back.learned, session.stored().state]).not.toContain('Y')
    expect(session.stored().findings.error_no).toBe('513')
  })

  it('is a page that can come back where the store is away', async () => {
    const session = challenged('2.1.0', 'Y')
    const away = Promise.reject(new Fault('store_away'))
    away.catch(() => {})
    Object.assign(session.ports.authentications, { findByTransaction: () => away })
    const app = fastify()
    try {
      const deps = { ports: session.ports, metrics: {}, log: silent } as unknown as ThreeDsDeps
      await app.register(async scope => resultRoutes(scope as unknown as GatewayApp, deps))
      const cres = base64url(stringify({ messageType: 'CRes', messageVersion: '2.1.0', ...session.ids }))
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await app.inject({ method: 'POST', url: RETURN, headers, payload: raw(cres) })
      expect([answer.statusCode, answer.headers['content-type']]).toEqual([503, 'text/html; charset=utf-8'])
      expect(answer.body).toContain('We can not look up the result just now.')
      expect(answer.body).toContain(`name="cres" value="${cres}"`)
    } finally {
      await app.close()
    }
  })
})
