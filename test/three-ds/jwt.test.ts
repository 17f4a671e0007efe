import { createHmac, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { revokeFormerContractKey, rotateContractKey } from '../../src/acts/contract-key.ts'
import { Secret } from '../../src/secret.ts'
import { CODE } from '../../src/simulate/three-ds/cards.ts'
import type { Contract } from '../../src/three-ds/contract.ts'
import { createJwt } from '../../src/three-ds/jwt.ts'
import { lookup } from '../../src/three-ds/lookup.ts'
import { isProblem } from '../../src/three-ds/problem.ts'
import type { Authentication } from '../../src/three-ds/record.ts'
import { receiveReturn } from '../../src/three-ds/result.ts'
import { validateJwt } from '../../src/three-ds/validate.ts'
import { makeJwtKey, sign, verify } from '../../src/vault/three-ds-jwt.ts'
import { type Bundle, challenge, openBundle } from './bundle.ts'
import { CALLER, CARD, CAVV, lookupBody, STRANGER } from './samples.ts'

let bundle: Bundle
beforeAll(async () => {
  bundle = await openBundle()
})
afterAll(() => bundle?.close())

const claimsOf = (jwt: string) =>
  JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) as Record<string, string & number>

async function begin(contract: Contract = bundle.contract): Promise<string> {
  const created = await createJwt(bundle.ports, CALLER, { threeds_contract_id: contract.contractId })
  if (isProblem(created)) throw new Error(`problem ${created.problem}`)
  return claimsOf(created.jwt)['jti'] ?? ''
}

/** Begins a challenge with a JWT that the service made. */
async function pending(
  contract: Contract = bundle.contract,
): Promise<{ jti: string; record: Authentication; answer: Record<string, string> }> {
  const jti = await begin(contract)
  const body = lookupBody(contract.contractId, CARD.challengeY, { device_info_id: jti })
  const found = await lookup(bundle.ports, CALLER, body)
  if (isProblem(found)) throw new Error(`problem ${found.problem}`)
  return { jti, record: found.record, answer: found.answer }
}

const now = () => Math.floor(bundle.ports.clock() / 1000)

/** Signs a JWT as the authentication network would. */
function signed(
  { jti, record }: { jti: string; record: Authentication },
  {
    status = 'Y',
    key = bundle.contract.key,
    claims = {},
    extended = {},
  }: {
    status?: string
    key?: Secret<Buffer>
    claims?: Record<string, unknown>
    extended?: Record<string, unknown>
  } = {},
): Promise<string> {
  const ExtendedData = { PAResStatus: status, ...(status === 'Y' ? { CAVV } : {}), ...extended }
  return sign(key, {
    jti: randomUUID(),
    aud: jti,
    iat: now(),
    Payload: { Payment: { ProcessorTransactionId: record.transactionId, ExtendedData } },
    ...claims,
  })
}

const validate = (record: Authentication, jwt: string, contract = bundle.contract, caller = CALLER) =>
  validateJwt(bundle.ports, caller, {
    authentication_id: record.authenticationId,
    jwt,
    threeds_contract_id: contract.contractId,
  })

describe('a created JWT', () => {
  it('is HS256 by the contract’s key, with the claims of the interface, and lives two hours', async () => {
    const created = await createJwt(bundle.ports, CALLER, { threeds_contract_id: bundle.contract.contractId })
    if (isProblem(created)) throw new Error('problem')
    const [header, payload, signature] = created.jwt.split('.')
    expect(JSON.parse(Buffer.from(header ?? '', 'base64url').toString())).toEqual({ alg: 'HS256', typ: 'JWT' })
    const mac = createHmac('sha256', bundle.contract.key.reveal()).update(`${header}.${payload}`).digest('base64url')
    expect(signature).toBe(mac)
    const claims = claimsOf(created.jwt)
    expect(claims).toMatchObject({ jti: expect.any(String), iss: 'issuer-1', OrgUnitId: 'unit-1', Payload: {} })
    expect((claims['exp'] ?? 0) - (claims['iat'] ?? 0)).toBe(7_200)
    expect(created.threeds_contract_id).toBe(bundle.contract.contractId)
  })

  it('is for those who act for the contract’s entity', async () => {
    const body = { threeds_contract_id: bundle.contract.contractId }
    expect(await createJwt(bundle.ports, STRANGER, body)).toMatchObject({ problem: 203 })
    expect(await createJwt(bundle.ports, CALLER, { threeds_contract_id: randomUUID() })).toMatchObject({ problem: 203 })
    expect(await createJwt(bundle.ports, CALLER, {})).toMatchObject({ problem: 101 })
  })
})

describe('a JWT that the browser brings back', () => {
  it('made by us after the challenge validates, with all that an authorisation needs', async () => {
    const { record, answer } = await pending()
    const { back } = await challenge(answer, { code: CODE })
    const returned = await receiveReturn(bundle.ports, back['cres'] ?? '')
    if (isProblem(returned)) throw new Error('problem')
    const validated = await validate(record, returned.jwt ?? '')
    expect(validated).toMatchObject({
      ended: false,
      answer: {
        authentication_id: record.authenticationId,
        action_code: 'SUCCESS',
        error_no: '0',
        error_desc: 'Success',
        validation_result: {
          pares_status: 'Y',
          eci_flag: '05',
          enrolled: 'Y',
          signature_verification: 'Y',
          cavv: expect.stringMatching(/^.{28}$/),
          cavv_algorithm: '2',
          authorization_payload: expect.any(String),
          ds_transaction_id: record.findings.ds_transaction_id,
          acs_transaction_id: record.findings.acs_transaction_id,
        },
      },
    })
  })

  it('made by the network ends the challenge that no result had come for', async () => {
    for (const [status, action, eci] of [
      ['Y', 'SUCCESS', '05'],
      ['N', 'FAILURE', '07'],
      ['U', 'NOACTION', '07'],
    ] as const) {
      const session = await pending()
      const validated = await validate(session.record, await signed(session, { status }))
      expect(validated).toMatchObject({
        ended: true,
        answer: { action_code: action, validation_result: { pares_status: status, eci_flag: eci } },
      })
      expect(await bundle.ports.authentications.find(session.record.authenticationId)).toMatchObject({ state: status })
    }
  })

  it('made by the network decides by its status alone, whatever value and ECI go with it', async () => {
    for (const [status, extended, expected] of [
      ['Y', { CAVV: undefined }, { eci_flag: '05' }],
      ['A', { CAVV: `k${'A'.repeat(27)}`, ECIFlag: '07' }, { eci_flag: '07', cavv: `k${'A'.repeat(27)}` }],
      ['R', { CAVV: '!', ECIFlag: 'N0' }, { eci_flag: 'N0', cavv: '!' }],
    ] as const) {
      const session = await pending()
      const validated = await validate(session.record, await signed(session, { status, extended }))
      expect(validated).toMatchObject({ answer: { validation_result: { pares_status: status, ...expected } } })
    }
  })

  it('is used once, also when it comes five times at once', async () => {
    const session = await pending()
    const jwt = await signed(session)
    const answers = await Promise.all(Array.from({ length: 5 }, () => validate(session.record, jwt)))
    expect(answers.filter(answer => !isProblem(answer))).toHaveLength(1)
    expect(answers.filter(isProblem).map(({ problem }) => problem)).toEqual([405, 405, 405, 405])
    // Another JWT for the same jti is refused as used, too.
    expect(await validate(session.record, await signed(session))).toMatchObject({ problem: 405 })
  })

  it('by the key that was replaced validates until that ends', async () => {
    const { contractId, key } = bundle.contract
    const by = { actor: { kind: 'machine', id: 'test@host' }, reason: undefined } as const
    const rotate = (next: Secret<Buffer>, formerMs: number) =>
      rotateContractKey(bundle.store, bundle.ring, { contractId, key: next, formerMs, isImported: false }, by)
    try {
      const [first, second, third] = [await pending(), await pending(), await pending()]
      const next = makeJwtKey()
      await rotate(next, 3_600_000)
      expect(isProblem(await validate(first.record, await signed(first)))).toBe(false)
      expect(isProblem(await validate(second.record, await signed(second, { key: next })))).toBe(false)
      await revokeFormerContractKey(bundle.store, contractId, by)
      expect(await validate(third.record, await signed(third))).toMatchObject({ problem: 402 })
    } finally {
      await rotate(key, 0)
    }
  })

  it('malformed, altered, unsigned or by another algorithm is refused', async () => {
    const session = await pending()
    const jwt = await signed(session)
    const [header, payload, signature] = jwt.split('.') as [string, string, string]
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const mac = (algorithm: string, text: string) =>
      createHmac(algorithm, bundle.contract.key.reveal()).update(text).digest('base64url')
    const other = `${encode({ alg: 'HS512' })}.${payload}`
    const crit = `${encode({ alg: 'HS256', crit: ['x'], x: 1 })}.${payload}`
    for (const [wrong, problem] of [
      ['x', 401],
      [`${jwt}=`, 401],
      [`${jwt}.x`, 401],
      [`${header}.${payload}.${signature.slice(0, -1)}-`, 401],
      [`${header}.${encode({ ...claimsOf(jwt), iat: now() - 1 })}.${signature}`, 402],
      [`${encode({ alg: 'none' })}.${payload}.`, 402],
      [`${other}.${mac('sha512', other)}`, 402],
      [`${crit}.${mac('sha256', crit)}`, 402],
      [await signed(session, { claims: { aud: [session.jti] } }), 401],
      [await signed(session, { claims: { jti: undefined } }), 401],
      [await signed(session, { claims: { Payload: { Payment: {} } } }), 401],
      [await signed(session, { status: 'C' }), 401],
      [await signed(session, { key: new Secret(Buffer.alloc(32)) }), 402],
    ] as const)
      expect(await validate(session.record, wrong), wrong).toMatchObject({ problem })
    expect(await validate(session.record, 'a\nb')).toMatchObject({ problem: 101 })
    // No refused one has used it up.
    expect(isProblem(await validate(session.record, jwt))).toBe(false)
  })

  it('too old, or answering one of ours that is, is refused', async () => {
    const session = await pending()
    for (const claims of [{ iat: now() - 7_300 }, { exp: now() - 100 }])
      expect(await validate(session.record, await signed(session, { claims }))).toMatchObject({ problem: 403 })
    const late = await pending()
    await bundle.store.query({
      text: `update tokenmill.threeds_jwt set issued_at = issued_at - interval '3 hours' where jti = $1`,
      values: [late.jti],
    })
    expect(await validate(late.record, await signed(late))).toMatchObject({ problem: 403 })
  })

  it('that answers none of ours is refused', async () => {
    const session = await pending()
    const jwt = await signed(session, { claims: { aud: randomUUID() } })
    expect(await validate(session.record, jwt)).toMatchObject({ problem: 404 })
  })

  it('of another contract is refused, whether the contracts have one key or two', async () => {
    const session = await pending()
    for (const key of [bundle.contract.key, new Secret(Buffer.alloc(32, 9))]) {
      const foreign = await bundle.addContract({ key })
      const theirs = await pending(foreign)
      const jwt = await signed({ ...session, jti: theirs.jti }, { key })
      expect(await validate(session.record, jwt)).toMatchObject({ problem: 406 })
      // The authentication of one contract isn't found with the other.
      expect(await validate(session.record, jwt, foreign)).toMatchObject({ problem: 204 })
    }
  })

  it('of another authentication is refused, by whichever of its two names', async () => {
    const [one, two] = [await pending(), await pending()]
    expect(await validate(two.record, await signed(one))).toMatchObject({ problem: 407 })
    expect(await validate(two.record, await signed({ jti: one.jti, record: two.record }))).toMatchObject({
      problem: 407,
    })
    expect(await validate(two.record, await signed({ jti: two.jti, record: one.record }))).toMatchObject({
      problem: 407,
    })
    expect(await validate(one.record, await signed(one), bundle.contract, STRANGER)).toMatchObject({ problem: 203 })
  })

  it('that contradicts how it ended is refused and not used up', async () => {
    const session = await pending()
    await challenge(session.answer, { do: 'cancel' })
    expect(await validate(session.record, await signed(session, { status: 'Y' }))).toMatchObject({ problem: 408 })
    expect(await validate(session.record, await signed(session, { status: 'N' }))).toMatchObject({
      ended: false,
      answer: { action_code: 'FAILURE' },
    })
  })

  it('is good for the lookup that named it last', async () => {
    const session = await pending()
    const body = lookupBody(bundle.contract.contractId, CARD.challengeY, { device_info_id: session.jti })
    const again = await lookup(bundle.ports, CALLER, body)
    if (isProblem(again)) throw new Error('problem')
    expect(await validate(session.record, await signed(session))).toMatchObject({ problem: 407 })
    expect(isProblem(await validate(again.record, await signed({ jti: session.jti, record: again.record })))).toBe(
      false,
    )
  })
})

describe('a browser’s return', () => {
  it('before the result has come brings no JWT, and believes no CRes', async () => {
    const { record } = await pending()
    const cres = (acsTransID: string | undefined) =>
      Buffer.from(
        JSON.stringify({
          messageType: 'CRes',
          messageVersion: '2.2.0',
          threeDSServerTransID: record.transactionId,
          acsTransID,
          transStatus: 'Y',
        }),
      ).toString('base64url')
    expect(await receiveReturn(bundle.ports, cres(record.findings.acs_transaction_id))).toMatchObject({ problem: 409 })
    expect(await receiveReturn(bundle.ports, cres(randomUUID()))).toMatchObject({ problem: 204 })
    expect(await receiveReturn(bundle.ports, 'nonsense')).toMatchObject({ problem: 101 })
    expect(await bundle.ports.authentications.find(record.authenticationId)).toMatchObject({ state: 'C' })
  })
})

it('a key of fewer than 32 bytes signs nothing', async () => {
  await expect(sign(new Secret(Buffer.alloc(31)), {})).rejects.toThrow('32 bytes')
  await expect(verify(new Secret(Buffer.alloc(31)), await sign(new Secret(Buffer.alloc(32)), {}), 0)).rejects.toThrow()
})
