// The meanings of the fields of token requests, for every document that shows them: the OpenAPI document and
// docs/schema. A default here says how a worker treats an absent field; no code fills it into a request.
import { BRANDS } from '../../token/brand.ts'
import { WINDOW } from '../../token/capture-time.ts'
import type { Notes } from './annotate.ts'

const MINUTES = WINDOW.beforeMs / 60_000

export const ENCRYPTED_CARD = [
  'The card, encrypted by the caller to a capture key of the entity. At most 16 KiB as JWE, 24 KiB as OpenPGP.',
  'Two envelopes are accepted. JWE (RFC 7516) in compact form: `alg` is `RSA-OAEP-256` for an RSA key or `ECDH-ES` for a P-256 or X25519 key, `enc` is `A256GCM` or `A128GCM`.',
  'OpenPGP: an armored message, or base64 of an armored or a binary message.',
  'The plaintext is one JSON object in UTF-8, on one line without spaces.',
  'Tags: `cardNumber` and `captureTime` are required.',
  '`expiryMonth` (1 to 12) with `expiryYear` (two digits mean 20YY, or four), `startMonth` with `startYear`, `cardholderName` (at most 30 characters), `sequenceNumber` (at most 3 digits) and `cvv` (3 or 4 digits; its form is checked, then it is dropped) are optional.',
  `\`captureTime\` is the time of capture in UTC (RFC 3339, section 5.6). The card is valid for ${MINUTES} minutes from then; at most 1 minute of the future is accepted.`,
].join(' ')

/** What must travel with a card, under the names that requests and answers have for it. */
export const ON_FILE_NOTES: Notes = {
  provider: 'Name of the provider that the card came from: 1 to 64 letters, digits, dots, dashes and underscores.',
  provider_account: "The account at the provider, 1 to 128 characters. Absent where the provider's ids are unique.",
  customer_id: "The provider's id of the customer, 1 to 128 characters.",
  card_id: "The provider's id of the card, 1 to 128 characters.",
  cardholder_name: 'The name as the source gave it, up to 256 characters.',
  network_transaction_ids:
    'All network transaction ids (NTI) as given, oldest first, up to 50. New ones are added to those that are known.',
  network_transaction_id:
    'The network transaction id that payments name, up to 64 characters. Without it the last one of `network_transaction_ids`, unless that one was known already.',
  transaction_link_id: "Mastercard's transaction link id (TLID), usually 22 characters, whose case counts.",
  first_amount: 'Amount of the first authorisation, in minor units.',
  first_currency: 'Its currency, ISO 4217 alphabetic code.',
  first_date: 'Its date (YYYY-MM-DD).',
  agreement: 'Kind of agreement: `RECURRING`, `INSTALMENT` or `UNSCHEDULED`.',
  agreed_by: 'How the customer agreed: `ONLINE`, `MAIL`, `TELEPHONE` or `IN_PERSON`.',
  agreed_on: 'When the customer agreed (YYYY-MM-DD).',
  is_default: "Whether it is the customer's default card.",
  billing_address: 'Billing address. Kept only where the token scope says so, and never shown over HTTP.',
}

export const FIELD_NOTES: Notes = {
  ...ON_FILE_NOTES,
  on_file: 'Whose card it is, and what must travel with it: one owner.',
  'reference.action': 'What is done: `RELEASE` takes the claim of this owner away.',
  on_orphan:
    'What becomes of a token that is left without owner: `keep` (default), `suspend`, or `delete`, which is final.',
  token_scope: 'UUID of the token scope. Within one scope a card has one token.',
  encrypted_card: ENCRYPTED_CARD,
  public_key_alias:
    'Alias of the capture key that the card is encrypted to (`kid` of a JWK). Required with `encrypted_card`.',
  card_brand: `Brand of the card: ${BRANDS.join(', ')}, or a local scheme that the operator has configured. Without it the brand follows from the card number. A brand that contradicts the number is refused; \`CB\` may stand beside VISA, MASTERCARD and MAESTRO.`,
  token_type: {
    description:
      '`REUSE`: a reuse token, which pays. `ANALYTICS`: an analytics token only; the card number is not kept. `REUSE_AND_ANALYTICS`: both.',
    default: 'REUSE',
  },
  reuse_token_type: {
    description:
      'Who makes the reuse token. `INTERNAL`: this vault. Another name: that third party. A third-party token requires `reuse_token_details`, and `token_context` with at least one of `entity_id` and `payment_provider_contract`; its `token_type` is not `ANALYTICS`.',
    default: 'INTERNAL',
  },
  reuse_token_details:
    'Expiry date of the card as the third party is told it. Required for a third-party token. Not used for `INTERNAL`.',
  'reuse_token_details.expiry_month': 'Month in which the card expires, 1 to 12.',
  'reuse_token_details.expiry_year': 'Year in which the card expires, four digits.',
  token_expiry_date:
    'Date (YYYY-MM-DD). After it, in UTC, the token is suspended; a later date activates the token again. Not in the past.',
  token_context:
    'For whom the token is made. Required for a third-party token, with at least one of its fields. For `INTERNAL` only `entity_id` counts.',
  'token_context.entity_id': 'UUID of the merchant entity that the request relates to. The client must act for it.',
  'token_context.payment_provider_contract':
    'UUID of the contract with the payment provider that makes the token. For third-party tokens only.',
  id: 'The reuse token, 14 to 255 characters.',
  action: 'What is done to the token: `SUSPEND`, `ACTIVATE` or `DELETE`. A deletion is final.',
  'scheme-token.action':
    'What is done to the scheme token: `ACTIVATE` creates it or resumes a suspended one, `SUSPEND` suspends it, `DELETE` deletes it.',
  card_holder_name: "Cardholder's name, at most 30 characters.",
  card_holder_email: "Cardholder's e-mail address, 3 to 254 characters.",
  expiry_month: 'Month in which the card expires, 1 to 12.',
  expiry_year: 'Year in which the card expires, four digits.',
  scheme_token_action:
    '`ACTIVATE` creates the scheme token, or resumes a suspended one. `SUSPEND` suspends it, `DELETE` deletes it. Beside a new number `ACTIVATE` creates that of the new card: if the network declines, nothing is changed. Needs the role SCHEME_TOKEN, and a token scope with scheme token support.',
}
