// Texts of the OpenAPI document about card tokens: properties, and examples of each operation.
import type { Notes } from '../../../src/job/describe/annotate.ts'
import { BRANDS } from '../../../src/token/brand.ts'
import { json, type OperationNotes } from './notes.ts'
import {
  ACCEPTED_AT,
  ALIAS,
  COMPLETED_AT,
  CONTRACT,
  ENCRYPTED_CARD,
  ENTITY,
  RECEIPT,
  REUSE_TOKEN,
  SCOPE,
  THIRD_PARTY_TOKEN,
} from './samples.ts'

const FROM_BIN = 'From the BIN table of the installation; absent where the table does not know the card.'
const BRAND = `Brand of the card: ${BRANDS.join(', ')}, or a local scheme of the installation. Absent where it is not known.`

export const CARD_PROPERTIES: Notes = {
  'updateToken.body.encrypted_card':
    'Another card for this token, encrypted by the caller. The form is that of `encrypted_card` in createUpdateToken; the same 15 minutes hold.',
  'updateToken.body.cvv':
    'Taken for compatibility, at most 30 characters. Nothing is made of it: it is not stored and not passed on.',
  'updateToken.body.token_expiry_date':
    'New date (YYYY-MM-DD) after which, in UTC, the token is suspended. A token that was suspended by its date becomes active again. Not in the past.',
  reuse_token: 'The token that stands for the card, 14 to 255 characters. Absent where `token_type` was `ANALYTICS`.',
  analytics_token:
    'Pseudonym of the card number for analysis. It is the same for the same card in one token scope and can not be turned back into the card. Absent where `token_type` was `REUSE`.',
  bin: 'First digits of the card number: 8 of a 16-digit number, 6 of any other. A scope may be set to 6 always.',
  last_four: 'Last four digits of the card number.',
  brand: BRAND,
  issuer_name: `Name of the issuing bank. ${FROM_BIN}`,
  type: `Whether the card is a debit or a credit card. ${FROM_BIN}`,
  variant: `Product variant of the card, such as GOLD. ${FROM_BIN}`,
  bin_details: 'What is known of the card by its first digits.',
  updated_at: 'Date of the last change (YYYY-MM-DD, UTC).',
  created_at: 'Date of creation (YYYY-MM-DD, UTC).',
  '200.token_expiry_date': 'Date (YYYY-MM-DD) after which, in UTC, the token is suspended. Absent where there is none.',
  token_status:
    '`ACTIVE`: the token can be used. `SUSPENDED`: it can not until it is activated. `DELETED`: it is gone for good.',
  '200.reuse_token_type': 'Who made the reuse token: `INTERNAL`, this vault, or the name of a third party.',
  '200.token_scope': 'UUID of the token scope that the token was created in.',
  scheme_token:
    'The scheme (network) token of the card. Present where there is one, or where one was asked for. Where the merchant is not the token requestor only `status` is answered.',
  'scheme_token.network_token':
    'Number of the scheme token, 12 to 16 digits. Answered only where the merchant is the token requestor: whole over HTTP, masked to its last four on results queues.',
  'scheme_token.status': 'Status of the scheme token. PUT and GET say `VALID` where PATCH says `ACTIVE`.',
  'scheme_token.expiry_month': 'Month in which the scheme token expires, 1 to 12.',
  'scheme_token.expiry_year': 'Year in which the scheme token expires, four digits.',
  'scheme_token.payment_account_reference':
    'Payment account reference (PAR, EMVCo): names the account behind the card and all its scheme tokens.',
  receipt_id: 'UUID of the operation. `GET /oidc/api/v2/operations/{receipt_id}` tells what became of it.',
  '202.status': '`PENDING`: the operation is stored and will be done.',
  'getOperation.200.status': '`PENDING`: not answered yet. `SUCCEEDED` and `FAILED` are final.',
  'getOperation.200.record': 'With `SUCCEEDED`: the record that the write would have been answered with at once.',
  accepted_at: 'When it was accepted, RFC 3339 in UTC.',
  completed_at: 'When it was answered, RFC 3339 in UTC. Absent while it is `PENDING`.',
}

const dates = { updated_at: '2026-01-31', created_at: '2026-01-31' }
const card = {
  bin: '55555555',
  expiry_month: 12,
  expiry_year: 2030,
  last_four: '4444',
  card_holder_name: 'ANNA MEYER',
  issuer_country: 'DEU',
  currency: 'EUR',
  bin_details: {
    bin: '55555555',
    brand: 'MASTERCARD',
    issuer_country: 'DEU',
    issuer_name: 'Example Bank',
    last_four: '4444',
    type: 'CREDIT',
    variant: 'GOLD',
  },
}
const created = {
  reuse_token: REUSE_TOKEN,
  reuse_token_type: 'INTERNAL',
  token_scope: SCOPE,
  ...card,
  ...dates,
  token_status: 'ACTIVE',
}
const accepted = {
  examples: json({ accepted: { receipt_id: RECEIPT, status: 'PENDING' } }),
  description: 'Stored; the answer comes later, at Location.',
}
const sent = { encrypted_card: ENCRYPTED_CARD, public_key_alias: ALIAS }

function lifecycle(description: string): OperationNotes {
  return {
    description,
    parameters: { id: REUSE_TOKEN },
    answers: { 202: accepted, 204: { description: 'Done.' } },
    refusals: { 400: ['field_length', 'params.id'], 404: ['token_not_found', 'params.id'] },
  }
}

/**
 * The notes of the card operations. `thirdParty`: a value of `reuse_token_type` other than INTERNAL, if there is one.
 */
export function cardOperations(thirdParty: string | undefined): Readonly<Record<string, OperationNotes>> {
  const foreign = {
    token_scope: SCOPE,
    ...sent,
    reuse_token_type: thirdParty,
    reuse_token_details: { expiry_month: 12, expiry_year: 2030 },
    token_context: { entity_id: ENTITY, payment_provider_contract: CONTRACT },
  }
  return {
    createUpdateToken: {
      description:
        'A card that has a token in this scope keeps that token; the fields of the request replace those stored, and absent ones stay. Another card gets a new token. With `Prefer: respond-async` the answer is 202.',
      parameters: { 'idempotency-key': 'order-2026-0131-1' },
      body: json({
        'token of this vault': { token_scope: SCOPE, ...sent },
        ...(thirdParty === undefined ? {} : { 'token of a third party': foreign }),
      }),
      answers: {
        200: {
          description:
            'The token, as it stands now. A repeat under an Idempotency-Key whose token was deleted since is answered with its status only.',
          examples: json({
            'token of this vault': created,
            ...(thirdParty === undefined
              ? {}
              : {
                  'token of a third party': {
                    ...created,
                    reuse_token: THIRD_PARTY_TOKEN,
                    reuse_token_type: thirdParty,
                  },
                }),
            'repeat after a deletion': { reuse_token: REUSE_TOKEN, token_status: 'DELETED' },
          }),
        },
        202: accepted,
      },
      refusals: {
        400: ['capture_time_stale', 'body.encrypted_card'],
        403: ['scope_forbidden', 'body.token_scope'],
      },
    },
    updateToken: {
      description:
        'Changes the fields that are sent; absent ones stay. With `encrypted_card` the token stands for that card from then on. `scheme_token_action` also needs the role SCHEME_TOKEN. With `Prefer: respond-async` the answer is 202.',
      parameters: { id: REUSE_TOKEN, 'idempotency-key': 'renewal-2026-0131-1' },
      body: json({
        'another expiry date': { expiry_month: 6, expiry_year: 2031 },
        'another card': sent,
        'a scheme token': { scheme_token_action: 'ACTIVATE' },
      }),
      answers: {
        200: {
          description: 'What of the token was or could have been changed.',
          examples: json({
            updated: {
              ...card,
              expiry_month: 6,
              expiry_year: 2031,
              card_holder_email: 'anna.meyer@example.com',
              ...dates,
              token_status: 'ACTIVE',
            },
            'with a scheme token': { ...card, ...dates, token_status: 'ACTIVE', scheme_token: { status: 'ACTIVE' } },
          }),
        },
        202: accepted,
      },
      refusals: { 400: ['field_range', 'body.expiry_month'], 404: ['token_not_found', 'params.id'] },
    },
    getToken: {
      description:
        "Reads a token of the client's entities. Deleted tokens, and those of others, are answered with 404.",
      parameters: { id: REUSE_TOKEN },
      answers: {
        200: {
          description: 'The token.',
          examples: json({
            token: {
              ...created,
              brand: 'MASTERCARD',
              issuer_name: 'Example Bank',
              type: 'CREDIT',
              variant: 'GOLD',
              scheme_token: {
                network_token: '5105105105105100',
                status: 'VALID',
                expiry_month: 12,
                expiry_year: 2030,
                payment_account_reference: '500181FC9PIKN7ZX9B2RQWT4HGDMA',
              },
            },
          }),
        },
      },
      refusals: { 400: ['field_length', 'params.id'], 404: ['token_not_found', 'params.id'] },
    },
    deleteToken: lifecycle(
      'Deletes the token for good. Card number and fingerprint are erased; later requests that name the token are answered with 404. With `Prefer: respond-async` the answer is 202.',
    ),
    suspendToken: lifecycle(
      'Suspends the token until it is activated. A token that is suspended already stays so. With `Prefer: respond-async` the answer is 202.',
    ),
    activateToken: lifecycle(
      'Activates a suspended token. A token that is active already stays so. With `Prefer: respond-async` the answer is 202.',
    ),
    getOperation: {
      description:
        'Tells how a write stands that was answered with 202. Poll until `status` is no longer `PENDING`. Needs the role TOKEN_READ or that of the write; only operations of the same client are found.',
      parameters: { id: RECEIPT },
      answers: {
        200: {
          description: 'How the operation stands.',
          examples: json({
            pending: { receipt_id: RECEIPT, status: 'PENDING', revision: 0, accepted_at: ACCEPTED_AT },
            succeeded: {
              receipt_id: RECEIPT,
              status: 'SUCCEEDED',
              revision: 1,
              code: 200,
              record: created,
              accepted_at: ACCEPTED_AT,
              completed_at: COMPLETED_AT,
            },
          }),
        },
      },
      refusals: { 400: ['field_format', 'params.id'], 404: ['operation_not_found', 'params.id'] },
    },
  }
}
