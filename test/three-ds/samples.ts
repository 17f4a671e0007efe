// Requests, contracts and records that the tests of 3-D Secure begin with.
import { randomBytes, randomUUID } from 'node:crypto'
import { Secret } from '../../src/secret.ts'
import type { Contract } from '../../src/three-ds/contract.ts'
import type { Authentication, Caller } from '../../src/three-ds/record.ts'
import { detectBrand } from '../../src/token/brand.ts'

export const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
export const OTHER_ENTITY = '7b2f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5c'
export const CALLER: Caller = { clientId: `c${'a'.repeat(25)}`, entities: [ENTITY] }
export const STRANGER: Caller = { clientId: `c${'b'.repeat(25)}`, entities: [OTHER_ENTITY] }

/** Published test cards, by the outcome that the simulator gives them. */
export const CARD = {
  Y: '4000000000001000',
  A: '4000000000002719',
  N: '4000000000002925',
  U: '4000000000002313',
  R: '4000000000002537',
  challengeY: '4000000000002503',
  challengeN: '4000000000002370',
  challengeU: '4000000000004640',
  mastercard: '5200000000002235',
  mastercardChallenge: '5200000000002151',
  silence: '4000000000002354',
  malformed: '4000000000009003',
  notEnrolled: '4000000000009011',
  failure: '4000000000009029',
} as const

/** In these tests the token of a card is the letter t and its number. */
export const tokenOf = (pan: string) => `t${pan}`

export function lookupBody(contractId: string, pan: string, more: Record<string, unknown> = {}) {
  return {
    amount: 1_000,
    billing_address_1: '1 Test Street',
    billing_city: 'Testville',
    billing_country_code: 'GB',
    billing_first_name: 'Ada',
    billing_last_name: 'Tester',
    currency_code: 'EUR',
    device_info_id: 'device-1',
    email: 'ada@example.com',
    merchant_reference: 'order-1',
    threeds_contract_id: contractId,
    reuse_token: tokenOf(pan),
    ...more,
  }
}

export function makeContract(directoryUrl: string, more: Partial<Contract> = {}): Contract {
  return {
    contractId: randomUUID(),
    entityId: ENTITY,
    name: `shop ${randomUUID()}`,
    key: new Secret(randomBytes(32)),
    directoryUrl,
    acquirerBin: '400000',
    acquirerMerchantId: 'merchant-1',
    mcc: '5999',
    merchantCountry: 'GBR',
    merchantName: 'Test <Shop> & Sons',
    requestorUrl: 'https://shop.example',
    notificationUrl: 'https://shop.example/return',
    requestorId: 'requestor-1',
    requestorName: 'Test Shop',
    issuer: 'issuer-1',
    orgUnitId: 'unit-1',
    createdAt: 0,
    ...more,
  }
}

export function makeRecord(more: Partial<Authentication> = {}): Authentication {
  return {
    authenticationId: randomUUID(),
    transactionId: randomUUID(),
    entityId: ENTITY,
    contractId: randomUUID(),
    clientId: CALLER.clientId,
    idempotencyKey: null,
    requestDigest: null,
    digestVersion: 1,
    jti: null,
    tokenId: null,
    publicKeyAlias: null,
    amount: 1_000,
    currencyCode: 'EUR',
    messageCategory: '01',
    challengeIndicator: null,
    network: 'VISA',
    state: 'OPEN',
    findings: { order_id: 'order-1', card_brand: 'VISA' },
    secrets: new Secret({}),
    askedUntil: 0,
    pendingUntil: 10_000_000_000_000,
    createdAt: 1_700_000_000_000,
    updatedAt: 1_700_000_000_000,
    version: 1,
    ...more,
  }
}

export const CAVV = Buffer.alloc(20, 7).toString('base64')

export const brandOf = (pan: string) => detectBrand(pan)
