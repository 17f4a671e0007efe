// The operations of the 3-D Secure service in its OpenAPI document, with examples.
import { bodyOf, problem } from '../../../../src/three-ds/problem.ts'
import { ERROR_NOTES } from '../../document/error-notes.ts'
import { type DocumentNotes, json, type OperationNotes } from '../../document/notes.ts'
import { AT } from '../../document/refusals.ts'
import { ALIAS, ENCRYPTED_CARD, ENTITY, REUSE_TOKEN } from '../../document/samples.ts'
import { LOOKUP_NOTES } from './lookup-notes.ts'
import { RECORD_NOTES } from './record-notes.ts'

const CONTRACT = '8d3f6b52-1c7e-4f0a-9b6d-2e5a8c1f4d73'
const AUTHENTICATION = '019c1a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b'
const TRANSACTION = '3e7a9d14-5b2c-4f86-8d1e-6a0b9c2f7e45'
const SESSION = 'c1f0e2d3-4b5a-4697-8879-6a5b4c3d2e1f'
const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiJjMWYwZTJkMyJ9.0Q8Nd1ZpV4yqWc3uJ6rKx5hT2mBvLfEaGsYo7iXwR9k'

const proven = {
  threeds_version: '2.2.0',
  enrolled: 'Y',
  pares_status: 'Y',
  signature_verification: 'Y',
  eci_flag: '05',
  ds_transaction_id: 'f25084f0-5b16-4c0a-ae5d-b24808a95e4b',
  error_no: '0',
  card_brand: 'VISA',
  acs_transaction_id: '5a4c8e1b-9d2f-4e70-b3a6-1f8d7c6b5a49',
  cavv: 'MTIzNDU2Nzg5MDA5ODc2NTQzMjE=',
}
const record = {
  _id: AUTHENTICATION,
  amount: 1099,
  currency_code: 'EUR',
  threeds_contract_id: CONTRACT,
  entity_id: ENTITY,
  authentication: proven,
  card: REUSE_TOKEN,
  created_at: '2026-01-31T09:30:00.000Z',
  transaction_id: TRANSACTION,
}
const request = {
  amount: 1099,
  currency_code: 'EUR',
  merchant_reference: 'order-1001',
  threeds_contract_id: CONTRACT,
  device_info_id: SESSION,
  email: 'anna.meyer@example.com',
  billing_first_name: 'Anna',
  billing_last_name: 'Meyer',
  billing_address_1: 'Hauptstr. 1',
  billing_city: 'Berlin',
  billing_postal_code: '10115',
  billing_country_code: 'DEU',
  device_data_info: {
    ip_address: '192.0.2.17',
    user_agent: 'Mozilla/5.0',
    browser_header: 'text/html',
    browser_language: 'de-DE',
    browser_javascript_enabled: true,
    browser_java_enabled: false,
    browser_color_depth: 24,
    browser_screen_height: 1080,
    browser_screen_width: 1920,
    browser_time_zone: -60,
  },
}
const ids = { authentication_id: AUTHENTICATION, transaction_id: TRANSACTION }

const FILTERS =
  'Filters stand in the query and are ANDed; one that is repeated means any of its values. Only authentications of the entities of the client are found; they are kept for 750 days.'
const wrongFilter = problemExample(102, { field: 'query.amount~', reason: 'not_applicable' })
const noContract = problemExample(203, { field: 'body.threeds_contract_id', reason: 'field_value' })

/** The error body of an error number. */
function problemExample(...said: Parameters<typeof problem>): Readonly<Record<string, unknown>> {
  return { ...bodyOf(problem(...said), AT).body }
}

const OPERATIONS: Readonly<Record<string, OperationNotes>> = {
  listAuthentications: {
    description: `Authentications, the newest first. ${FILTERS}`,
    parameters: { _limit: 100, _sort: ['-created_at'], currency_code: 'EUR', 'authentication.pares_status': 'Y' },
    answers: { 200: { description: 'The authentications.', examples: json({ list: [record] }) } },
    refusals: { 400: wrongFilter },
  },
  countAuthentications: {
    description: `The number of authentications that the filters find. ${FILTERS}`,
    parameters: { currency_code: 'EUR' },
    answers: { 200: { description: 'How many there are.', examples: json({ count: { count: 1 } }) } },
    refusals: { 400: wrongFilter },
  },
  getAuthentication: {
    description: 'One authentication, as it stands now.',
    parameters: { id: AUTHENTICATION },
    answers: { 200: { description: 'The authentication.', examples: json({ record }) } },
    refusals: {
      400: ['field_format', 'params.id'],
      404: problemExample(204, { field: 'params.id', reason: 'field_value' }),
    },
  },
  lookup: {
    description:
      'Asks the directory server of the card network. The answer is final, or a challenge (`pares_status` C): then the browser posts `payload` as `creq` to `acs_url`. After a 504 repeat the lookup under its Idempotency-Key; without one each lookup is a new authentication.',
    parameters: { 'idempotency-key': 'lookup-order-1001' },
    body: json({
      'with a token': { ...request, reuse_token: REUSE_TOKEN },
      'with an encrypted card': { ...request, encrypted_card: ENCRYPTED_CARD, public_key_alias: ALIAS },
    }),
    answers: {
      200: {
        description: 'The outcome, or the challenge.',
        examples: json({
          authenticated: { ...proven, cavv_algorithm: '2', ...ids, token: REUSE_TOKEN },
          challenge: {
            threeds_version: '2.2.0',
            enrolled: 'Y',
            pares_status: 'C',
            error_no: '0',
            card_brand: 'VISA',
            acs_url: 'https://acs.example/challenge',
            payload: 'eyJtZXNzYWdlVHlwZSI6IkNSZXEifQ',
            ...ids,
          },
        }),
      },
    },
    refusals: { 400: ['field_required', 'body.email'], 404: noContract, 504: problemExample(502) },
  },
  createJwt: {
    description: "Makes the JWT that a browser's session begins with. Its `jti` is the `device_info_id` of the lookup.",
    body: json({ contract: { threeds_contract_id: CONTRACT } }),
    answers: {
      201: { description: 'The JWT.', examples: json({ created: { jwt: JWT, threeds_contract_id: CONTRACT } }) },
    },
    refusals: { 400: ['field_format', 'body.threeds_contract_id'], 404: noContract },
  },
  validateJwt: {
    description: 'A JWT is taken once. What counts is the outcome that is answered here, never what the browser says.',
    body: json({ returned: { authentication_id: AUTHENTICATION, jwt: JWT, threeds_contract_id: CONTRACT } }),
    answers: {
      201: {
        description: 'The outcome of the challenge.',
        examples: json({
          validated: {
            authentication_id: AUTHENTICATION,
            action_code: 'SUCCESS',
            error_no: '0',
            error_desc: 'Success',
            validation_result: {
              pares_status: 'Y',
              eci_flag: '05',
              enrolled: 'Y',
              signature_verification: 'Y',
              cavv: proven.cavv,
              cavv_algorithm: '2',
            },
          },
        }),
      },
    },
    refusals: { 400: problemExample(403), 404: noContract },
  },
}

export const THREE_DS_NOTES: DocumentNotes = {
  tags: [
    { name: '3DS Authentication', description: 'Authentications that were begun: list, count, retrieve.' },
    { name: 'Lookup', description: 'Begins an authentication and answers its outcome, or the challenge.' },
    { name: 'JWT', description: "The JWTs of a browser's session." },
  ],
  properties: { ...ERROR_NOTES, ...RECORD_NOTES, ...LOOKUP_NOTES },
  operations: OPERATIONS,
}
