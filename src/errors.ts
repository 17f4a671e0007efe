// All reasons of refusals and codes of faults. A refusal: a rule says no; it is a value and never retried. A fault:
// something around tokenmill failed; it is thrown, and the verdict beside its code says whether it is retried. A bug is
// a failed assertion or any other error; `toFault` gives it the code `defect`. The texts never quote a value.

/** Reason → HTTP status and text. The words are stable; `docs/results.md` lists them. */
export const REASONS = {
  // The form of a field, in any kind of request.
  field_required: { code: 400, text: 'This field is required.' },
  field_unknown: { code: 400, text: 'This field does not exist.' },
  field_type: { code: 400, text: 'This field has the wrong type.' },
  field_format: { code: 400, text: 'This field does not have the required format.' },
  field_range: { code: 400, text: 'This value is outside the permitted range.' },
  field_length: { code: 400, text: 'This value is too short or too long.' },
  field_value: { code: 400, text: 'This value is not one of the permitted values.' },
  field_characters: { code: 400, text: 'This text holds control characters or is not well-formed Unicode.' },
  plus_unescaped: { code: 400, text: 'The + of this time became a blank; in a URL, write + as %2B.' },
  field_spreadsheet: { code: 400, text: 'A spreadsheet has made this text of another one.' },
  field_conflict: { code: 400, text: 'These fields exclude one another.' },
  record_too_large: { code: 400, text: 'This record is longer than 64 KiB.' },
  // Requests over HTTP.
  body_media_type: { code: 400, text: 'The body does not have an accepted media type.' },
  body_encoding: { code: 400, text: 'The body is compressed; send it without Content-Encoding.' },
  body_json: { code: 400, text: 'The body is not one JSON object, or names a member twice.' },
  body_too_large: { code: 400, text: 'The body is longer than the limit.' },
  body_broken: { code: 400, text: 'The body broke off before its end, or stopped arriving.' },
  rows_unreadable: { code: 400, text: 'The body can not be read as rows.' },
  batch_id_reused: { code: 400, text: 'This batch_id was used for another request.' },
  batch_unfinished: { code: 404, text: 'This batch is not finished; it has no results yet.' },
  batch_not_found: { code: 404, text: 'No such batch.' },
  operation_not_found: { code: 404, text: 'No such operation.' },
  report_not_found: { code: 404, text: 'No such report.' },
  report_not_ready: { code: 404, text: 'This report has no file.' },
  search_unreadable: { code: 400, text: 'This search expression can not be read.' },
  search_too_long: { code: 400, text: 'This search takes too long; narrow it down.' },
  path_unknown: { code: 404, text: 'This path does not exist, or not with this method.' },
  // The envelope.
  envelope_expired: { code: 400, text: 'The job was not started before its exp.' },
  envelope_future: { code: 400, text: 'iat lies in the future: the clock of the sender is ahead.' },
  envelope_lifetime: { code: 400, text: 'exp is not after iat, or too long after it.' },
  jti_reused: {
    code: 400,
    text: 'This jti was used for another request, or for a card that can not be compared any more because the key of one of both is gone.',
  },
  receipt_unproved: {
    code: 500,
    text: 'What was decided about this job can not be proved: its record in the database was changed. Nothing was done; tell the operator.',
  },
  reversed: { code: 500, text: 'This operation was reversed, and its jti is spent; use a new jti.' },
  sequence_stale: { code: 400, text: 'A job with this sequence or a later one has taken effect on this token.' },
  sequence_not_allowed: { code: 400, text: 'sequence is not allowed on this kind.' },
  reply_queues: { code: 400, text: 'This client has reached its limit of reply queues.' },
  report_unavailable: { code: 400, text: 'This release does not make this type of report.' },
  reports_unavailable: {
    code: 400,
    text: 'This installation makes no reports: its hosts have no shared folder for report files.',
  },
  kind_unavailable: { code: 400, text: 'This release does not take this kind of job.' },
  role_missing: { code: 403, text: 'Your roles do not permit this query.' },
  entity_forbidden: { code: 403, text: 'This client does not act for this entity.' },
  // Scopes, tokens, keys.
  scope_forbidden: { code: 403, text: 'This entity may not use this token scope.' },
  guesses: {
    code: 403,
    text: 'Too many different card numbers were tried for these digits; try again after 24 hours.',
  },
  dry_run_rows: { code: 403, text: 'This client has reached its daily limit of dry-run rows.' },
  token_suspended: { code: 400, text: 'This token is suspended.' },
  token_not_found: { code: 404, text: 'No such token.' },
  reference_unknown: { code: 404, text: 'No such owner is, or was, known in this token scope.' },
  alias_unknown: { code: 400, text: 'No capture key of this entity has this alias.' },
  // The card.
  card_undecryptable: { code: 400, text: 'The encrypted card could not be decrypted.' },
  cipher_unsupported: { code: 400, text: 'The encrypted card uses a cipher that is not supported.' },
  card_malformed: { code: 400, text: 'The card data do not have the required form.' },
  capture_time_invalid: { code: 400, text: 'captureTime is missing or is not an RFC 3339 time in UTC.' },
  capture_time_stale: { code: 400, text: 'captureTime is not within the permitted 15 minutes; is the clock right?' },
  pan_format: { code: 400, text: 'The card number is not 12 to 19 digits.' },
  pan_padded: {
    code: 400,
    text: 'The card number begins with 0, as no card number does: zeros were put in front of it. Send it without them.',
  },
  pan_luhn: { code: 400, text: 'The card number fails the Luhn check.' },
  pan_length: { code: 400, text: 'The brand of this card number does not issue numbers of this length.' },
  three_ds_pan_length: { code: 400, text: '3-D Secure takes card numbers of 13 to 19 digits.' },
  expiry_format: { code: 400, text: 'The expiry date is not a month and a year.' },
  name_length: { code: 400, text: 'The cardholder name is longer than 30 characters.' },
  cvv_format: { code: 400, text: 'The CVV is not 3 or 4 digits.' },
  cvv_not_allowed: { code: 400, text: 'A CVV is not accepted in a queue job.' },
  card_not_allowed: { code: 400, text: 'A clear card is accepted only inside an encrypted block.' },
  brand_conflict: { code: 400, text: 'card_brand contradicts the card number.' },
  expiry_past: { code: 400, text: 'token_expiry_date lies in the past.' },
  pan_taken: { code: 400, text: 'Another live token of this scope already stands for this card.' },
  third_party_context: {
    code: 400,
    text: 'A third-party token needs token_context with entity_id or payment_provider_contract.',
  },
  third_party_unavailable: { code: 400, text: 'No third party makes tokens of this type for this entity or contract.' },
  third_party_analytics: { code: 400, text: 'A third party does not make tokens for analytics only.' },
  third_party_card: { code: 400, text: 'The card of a third-party token can not be changed.' },
  third_party_card_ineligible: { code: 400, text: 'The third party makes no tokens for this card.' },
  third_party_card_declined: { code: 400, text: 'The third party declined a token for this card.' },
  third_party_request_invalid: { code: 400, text: 'The third party did not accept the request.' },
  third_party_token_taken: {
    code: 400,
    text: 'The third party answered with a token that this installation already has for another request: use that token, or another contract.',
  },
  scheme_action_unavailable: { code: 400, text: 'No scheme token network of this installation accepts this card.' },
  scheme_not_supported: { code: 400, text: 'This token scope does not support scheme tokens.' },
  scheme_token_absent: { code: 400, text: 'This token has no scheme token for this action.' },
  scheme_card_ineligible: { code: 400, text: 'The scheme makes no tokens for this card.' },
  scheme_card_declined: { code: 400, text: 'The scheme or the issuer declined a token for this card.' },
  scheme_token_unknown: { code: 400, text: 'The scheme does not know this token any more.' },
  scheme_token_state: { code: 400, text: 'The state of the token at the scheme does not permit this action.' },
  scheme_token_unproved: {
    code: 500,
    text: 'How the provider names this token can not be proved: its record in the database was changed. Nothing was done; tell the operator.',
  },
  scheme_request_invalid: { code: 400, text: 'The scheme did not accept the request.' },
  not_applicable: { code: 400, text: 'This field does not apply to this token.' },
  // Batches.
  card_expired: { code: 400, text: 'The card has expired, and the batch refuses expired cards.' },
  source_time_invalid: { code: 400, text: 'The source time is missing or can not be read.' },
  source_time_future: { code: 400, text: 'The source time is later than the beginning of the batch.' },
  conflict: { code: 400, text: 'The store has other data for this card, and the batch refuses conflicts.' },
  batch_extent: { code: 400, text: 'This batch began with another extent, or this chunk lies outside it.' },
  batch_of_several: { code: 400, text: 'Several clients have a batch of this id; name one of them as clientId.' },
  batch_finished: { code: 400, text: 'This batch is finished, and this chunk is not part of it.' },
  batch_layout: { code: 400, text: 'This batch began with another layout.' },
  scheme_no_answer: { code: 400, text: 'The card network gave no answer for this card; try again later.' },
  batch_too_old: { code: 400, text: 'accepted_at is too long ago to begin or continue this batch.' },
  block_undecryptable: { code: 400, text: 'The block could not be decrypted.' },
  block_records: { code: 400, text: 'The block does not hold the stated number of records.' },
  cancelled: { code: 400, text: 'The batch was cancelled before this record was started.' },
  // The ledger.
  currency_unknown: { code: 400, text: 'This is not an ISO 4217 currency with a minor unit.' },
  amount_sign: { code: 400, text: 'The amount has a sign that this type of transaction does not permit.' },
  amount_exponent: { code: 400, text: 'The amount has more decimals than its currency.' },
  transaction_conflict: { code: 400, text: 'The ledger has this transaction with other data, and is not rewritten.' },
  // Rows of a file, refused by its reader.
  row_fields: { code: 400, text: 'The row has too few or too many fields.' },
  row_quotes: { code: 400, text: 'The quotes of this row do not match.' },
  row_nul: { code: 400, text: 'The row holds a NUL byte.' },
  row_utf8: { code: 400, text: 'The row is not valid UTF-8.' },
  row_json: { code: 400, text: 'The row is not a JSON object.' },
  row_too_long: { code: 400, text: 'The row is longer than 64 KiB.' },
  element_too_large: { code: 400, text: 'The element is longer than 1 MiB, or holds more than 10,000 cards.' },
  reference_pan: { code: 400, text: 'The reference holds the card number of its own job or row, or of a nearby row.' },
  jti_pan: { code: 400, text: 'The jti holds the card number of its own job, or a value that could be a card number.' },
  batch_id_pan: { code: 400, text: 'The batch_id holds a value that could be a card number.' },
  parameter_pan: { code: 400, text: 'A parameter holds a value that could be a card number.' },
  echo_pan: { code: 400, text: 'An echoed column holds the card number of its own row, or of a nearby row.' },
  // Acts of people. A worker checks in this order.
  act_expired: { code: 400, text: 'The act expired before a worker began it, or its expires_at is too far ahead.' },
  reason_pan: { code: 400, text: 'The reason holds a value that could be a card number.' },
  person_unknown: { code: 403, text: 'This person is not known here, is revoked, or was not added by tokenmill.' },
  passkey_missing: { code: 403, text: 'This act needs a passkey.' },
  passkey_unknown: { code: 403, text: 'This passkey is not one of this person, or is revoked.' },
  passkey_form: { code: 403, text: 'What the passkey signed does not have the required form.' },
  passkey_algorithm: { code: 403, text: 'The passkey has an algorithm that is not supported.' },
  passkey_challenge: { code: 403, text: 'The passkey signed another act.' },
  passkey_origin: { code: 403, text: 'The passkey was used on another origin than the console of this installation.' },
  passkey_rp_id: { code: 403, text: 'The passkey is bound to another domain than the console of this installation.' },
  passkey_unverified: { code: 403, text: 'The passkey did not verify its user by PIN, finger or face.' },
  passkey_signature: { code: 403, text: 'The signature of the passkey is wrong.' },
  passkey_counter: { code: 403, text: 'The counter of the passkey went back: there may be a copy of it.' },
  act_repeated: { code: 403, text: 'This act was done or refused before.' },
  act_forbidden: { code: 403, text: 'The roles of this person do not permit this act.' },
  changed_meanwhile: { code: 400, text: 'It has changed since the person saw it; look again, then decide.' },
  act_state: { code: 400, text: 'Its present state does not permit this act.' },
  audit_away: { code: 403, text: 'The place of the audit takes no rows, so nothing is exported; try again later.' },
  schedule_not_found: { code: 404, text: 'No such schedule.' },
  schedule_running: { code: 400, text: 'A run of this date is under way already; wait until it ends.' },
  failed_not_found: { code: 404, text: 'No such failed job.' },
  invite_unknown: { code: 403, text: 'This invite is not known here, was used, or has expired.' },
  person_exists: { code: 400, text: 'There is a person of this name or id.' },
  person_local: { code: 400, text: 'This is the person of the embedded engine, who has no passkey and no invite.' },
  person_own: { code: 403, text: 'A new link for a person is made by another administrator.' },
  last_admin: {
    code: 400,
    text: 'Nobody else has the role ADMIN for all entities and a passkey for this console; invite another one first.',
  },
  passkey_same: { code: 400, text: 'A passkey is removed by the touch of another one.' },
  identity_taken: { code: 400, text: 'This account is connected with a person already.' },
  identity_unknown: { code: 400, text: 'This person is not connected with this account.' },
  passkey_exists: { code: 400, text: 'This passkey is in use.' },
  // A fault or defect, as the caller sees it.
  internal: { code: 500, text: 'Unexpected error; quote code and timestamp to support.' },
} as const satisfies Record<string, { code: 400 | 403 | 404 | 500; text: string }>

export type Reason = keyof typeof REASONS

/**
 * What is wrong with a Bearer token, as `error_description` says it (RFC 6750 section 3: ASCII without quotes and
 * backslashes). The last text is the same for an unknown user, an unknown key and a wrong signature, so that nobody can
 * find out by trial which users and keys exist. All others describe the token itself.
 */
export const TOKEN_FLAWS = {
  token_length: 'the token is longer than 8192 characters',
  token_form: 'the token is not a compact JWS of two JSON objects, in base64url without padding or spaces',
  typ: 'typ must be JWT or at+jwt, or be left out',
  alg: 'alg must be EdDSA, ES256, PS256 or RS256',
  crit: 'crit is not supported',
  kid: 'kid must be a text of 1 to 256 characters',
  kid_missing: 'kid is missing, which is permitted only for a user with exactly one active key',
  sub_missing: 'sub (the user id) is missing',
  sub_format: 'sub is not a UUID',
  entity_id_missing: 'entity_id is missing',
  entity_id_format: 'entity_id is not a UUID',
  roles_format: 'roles is not a list of names',
  lifetime_missing: 'exp and iat are both missing, and one of them is required',
  exp_format: 'exp is not a number of seconds',
  exp_past: 'exp has passed',
  iat_format: 'iat is not a number of seconds',
  iat_future: 'iat lies in the future',
  iat_past: 'iat lies more than 1 hour back, and exp is missing',
  nbf_format: 'nbf is not a number of seconds',
  nbf_future: 'nbf lies in the future',
  aud: 'aud names another installation',
  unaccepted: 'the token is not accepted',
} as const satisfies Record<string, string>

export type TokenFlaw = keyof typeof TOKEN_FLAWS
const UNKNOWN = {
  code: 400,
  text: 'This reason is not known here; see the documentation of the release of the workers.',
} as const

/**
 * Status and text of a reason. Results and receipts may hold one that isn't known here.
 */
export function meaningOf(reason: string): { code: 400 | 403 | 404 | 500; text: string } {
  return Object.hasOwn(REASONS, reason) ? REASONS[reason as Reason] : UNKNOWN
}

/** What is wrong with one field. */
export interface FieldReason {
  /** The path of the field, as `details` names it: `body.expiry_month`. */
  field: string
  /** A word of REASONS, or one that isn't known here. */
  reason: string
  /** A sentence that says more than that of the reason. It stays in the process that makes it. */
  text?: string
}

/** A rule says no. */
export interface Refusal extends FieldReason {
  refused: true
  reason: Reason
  /** Other fields of the request that are wrong, too. */
  also?: FieldReason[]
}

/** All fields that a refusal names. */
export function fieldsOf({ field, reason, also = [] }: Refusal): FieldReason[] {
  return [{ field, reason }, ...also]
}

export function textOf({ reason, text }: FieldReason): string {
  return text ?? meaningOf(reason).text
}

export function refuse(reason: Reason, field: string): Refusal {
  return { refused: true, reason, field }
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && (value as { refused?: unknown }).refused === true
}

/**
 * Code of a fault → verdict: `retry` the job with backoff, `pause` the worker until the fault is over (which uses no
 * attempt), or `fail` the job at once.
 */
export const FAULTS = {
  store_away: { verdict: 'pause', text: 'The token store cannot be reached.' },
  queue_away: { verdict: 'pause', text: 'The queue server cannot be reached.' },
  store_busy: { verdict: 'retry', text: 'The token store is short of connections, locks or space.' },
  // Callers see these texts; docs/on-call.md says what the operator does.
  store_denied: { verdict: 'retry', text: 'The token store denies a right.' },
  contention: { verdict: 'retry', text: 'Other jobs changed the same rows, at every attempt.' },
  key_unavailable: { verdict: 'retry', text: 'A key of the vault could not be loaded.' },
  rights_unknown: { verdict: 'retry', text: 'No worker has signed yet which clients are live.' },
  capture_unproved: { verdict: 'retry', text: 'No believed key of the installation has signed a capture key.' },
  kek_away: { verdict: 'retry', text: 'The key-encryption key cannot be reached.' },
  deadline: { verdict: 'retry', text: 'The attempt exceeded its time limit.' },
  files_away: { verdict: 'retry', text: 'The folder of report files (REPORTS_URL) cannot be reached.' },
  report_died: { verdict: 'retry', text: 'The process that made this report died.' },
  report_mismatch: { verdict: 'fail', text: 'The lines and sums of this report differ; there is no file.' },
  report_missing: {
    verdict: 'fail',
    text: 'The file of this report is not in the folder of report files (REPORTS_URL).',
  },
  report_spoilt: { verdict: 'fail', text: 'The file of this report is not the file that was made.' },
  scheme_away: {
    verdict: 'retry',
    text: 'A scheme token network or third party cannot be reached, or asks for a later retry.',
  },
  key_stolen: {
    verdict: 'fail',
    text: 'A stolen key signed this reversal after the theft; `tokenmill system confirm` does it all the same.',
  },
  crashed: { verdict: 'fail', text: 'The process that worked this job died.' },
  data: { verdict: 'fail', text: 'The store refused the data of this job.' },
  defect: { verdict: 'fail', text: 'tokenmill has a defect: an assertion did not hold.' },
} as const satisfies Record<string, { verdict: 'retry' | 'pause' | 'fail'; text: string }>

export type FaultCode = keyof typeof FAULTS

/** Something around tokenmill failed. A fault holds a code and never a value; `cause` doesn't leave this process. */
export class Fault extends Error {
  override name = 'Fault'
  readonly code: FaultCode

  constructor(code: FaultCode, cause?: unknown) {
    super(FAULTS[code].text, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** Makes a Fault of anything thrown: a right that PostgreSQL denied is store_denied, any other error is a defect. */
export function toFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  const isDenied = error instanceof Error && 'code' in error && error.code === INSUFFICIENT_PRIVILEGE
  return new Fault(isDenied ? 'store_denied' : 'defect', error)
}

/** A SQLSTATE. The store throws such an error unchanged, because some callers look for this code. */
const INSUFFICIENT_PRIVILEGE = '42501'

/** Throws if `holds` is false: then tokenmill itself has a bug. */
export function assert(holds: unknown, law: string): asserts holds {
  if (!holds) throw new Error(`broken law: ${law}`)
}
