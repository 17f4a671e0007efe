// Texts of the OpenAPI document about the answers of the 3-D Secure service. The name of the EMV 3-D Secure member is
// in brackets.
import type { Notes } from '../../../../src/job/describe/annotate.ts'
import { BRANDS } from '../../../../src/token/brand.ts'

export const RECORD_NOTES: Notes = {
  _id: 'UUID of the authentication.',
  amount: 'Amount in minor units of `currency_code`: 1099 is 10.99 EUR.',
  threeds_contract_id: 'UUID of the 3-D Secure contract of the merchant.',
  authentication: 'How the authentication stands.',
  threeds_version: 'Version of EMV 3-D Secure that the messages had (messageVersion).',
  enrolled: 'Whether the card takes part in 3-D Secure: `Y` yes, `N` no, `U` not known, `B` bypassed.',
  pares_status:
    'Outcome (transStatus): `Y` authenticated, `A` attempted, `N` not authenticated, `U` could not be, `R` rejected: never authorise, `C` a challenge is under way. Absent until the directory server answers.',
  signature_verification: 'Whether the answer of the card network was verified: `Y` or `N`.',
  eci_flag:
    'Electronic commerce indicator for the authorisation (eci), two characters, as the directory server sent it. Where it sent none: for Visa, Amex, JCB, Diners, Discover and UPI 05 authenticated, 06 attempted, 07 neither; for Mastercard and Maestro 02, 01, 00, and 04 data only, 06 exemption, 07 recurring; without a payment N2 or N0. A payment must not use N2 or N0.',
  cavv: 'Authentication value for the authorisation (authenticationValue), as the card network made it, at most 4,000 characters. Any outcome may carry one, and Y and A may lack one.',
  cavv_algorithm: 'Kind of the value in `cavv`: `2` CVV with ATN (all networks but Mastercard), `3` Mastercard SPA.',
  payload: 'What the browser posts to `acs_url` as `creq`. Present while a challenge is under way.',
  ds_transaction_id: 'Transaction id of the directory server (dsTransID).',
  acs_transaction_id: "Transaction id of the issuer's access control server (acsTransID).",
  xid: 'Transaction id as 3-D Secure 1 had it, for authorisations that still ask for one.',
  order_id: 'Reference of the payment, as the lookup named it.',
  acs_url: 'Where the browser is sent for a challenge (acsURL).',
  error_no: 'Error number of this service, or `0` for none. docs/three-ds.md lists them.',
  error_desc: 'The error in words.',
  reason_code: 'Error code of the directory server (errorCode), where it refused the request.',
  reason_desc: 'What the directory server says of its error (errorDescription).',
  status_reason: 'Why the outcome is what it is (transStatusReason), two digits of EMV or of the network.',
  cardholder_info: 'Text of the issuer that the shop shows to the cardholder (cardholderInfo).',
  card_brand: `Brand of the card: ${BRANDS.join(', ')}.`,
  network_score: 'Risk score of the card network, where it sends one.',
  acs_rendering_type: 'How the challenge is shown (acsRenderingType), as the access control server says.',
  authentication_type:
    "How the cardholder is authenticated (authenticationType): 01 static, 02 dynamic, 03 out of band, 04 decoupled; 80 to 99 are the card network's. A word that is not known is kept as it was sent.",
  challenge_required: 'Whether a challenge is required by mandate (acsChallengeMandated): `Y` or `N`.',
  challenge_cancel:
    'Why a challenge was left (challengeCancel): 01 by the cardholder, 03 to 10 as EMV lists them, 80 to 99 as the card network does.',
  card: 'Reuse token of the card. Absent where the card has no token.',
  currency_code: 'Currency of the amount, ISO 4217 alphabetic code.',
  created_at: 'When the authentication began, RFC 3339 in UTC.',
  entity_id: 'UUID of the merchant entity.',
  transaction_id: 'UUID of the transaction (threeDSServerTransID). Repeats of a lookup have the same.',
  public_key_alias:
    'Alias of the capture key that the card was encrypted to. Present where the lookup had `encrypted_card`.',
  count: 'Number of authentications that the filters find.',
  authentication_id: 'UUID of the authentication.',
  token: 'Reuse token of the card. Absent where the card has no token.',
  jwt: 'JWT (RFC 7519), HS256 by the key of the contract. It lives two hours.',
  'validateJwt.body.jwt': 'The JWT that came back from the browser after the challenge, at most 16,384 characters.',
  'validateJwt.body.authentication_id': 'UUID of the authentication, as the lookup answered it.',
  action_code:
    '`SUCCESS`: authenticated or attempted. `FAILURE`: not authenticated or rejected. `NOACTION`: could not be authenticated. `ERROR`: see `error_no`.',
  validation_result: 'The outcome for the authorisation.',
  authorization_payload: 'JSON in base64: what an authorisation needs of the outcome.',
  'error.code': 'Error number of this service, three digits; not the HTTP status. docs/three-ds.md lists them.',
  'listAuthentications.query._limit': 'Most records that are answered.',
  'listAuthentications.query._skip': 'Records that are skipped at the start of the list.',
  'getAuthentication.path.id': 'UUID of the authentication.',
}
