// What each error of MDES and of its API gateway means, as data: refuse, repeat, repeat once, or ask MDES whether the
// call had its effect. A status 429 always means: repeat. If a code isn't listed here, the HTTP status decides.
import type { OutboundAnswer } from '../outbound.ts'
import { retryAfterMs } from './call.ts'
import type { ProviderAnswer, ProviderRefusal } from './provider.ts'

type ErrorRule =
  | { verdict: 'refuse'; reason: ProviderRefusal }
  | { verdict: 'again'; once: boolean }
  /** The call may have had its effect: the caller asks MDES. */
  | { verdict: 'ask' }

const refuse = (reason: ProviderRefusal): ErrorRule => ({ verdict: 'refuse', reason })
const often: ErrorRule = { verdict: 'again', once: false }
const once: ErrorRule = { verdict: 'again', once: true }
const ask: ErrorRule = { verdict: 'ask' }

export const MDES_ERRORS: Readonly<Record<string, ErrorRule>> = {
  // Errors about the card: a repeat would get the same answer.
  PAN_INELIGIBLE: refuse('card_ineligible'),
  PAN_INELIGIBLE_FOR_DEVICE: refuse('card_ineligible'),
  TOKENIZATION_INELIGIBLE: refuse('card_ineligible'),
  DEVICE_INELIGIBLE: refuse('card_ineligible'),
  CARD_NOT_ALLOWED: refuse('card_ineligible'),
  INVALID_PAN: refuse('card_declined'),
  MISSING_EXPIRY_DATE: refuse('card_declined'),
  ISSUER_DECLINE: refuse('card_declined'),
  PAN_PROVISIONING_COUNT_EXCEEDED: refuse('card_declined'),
  PROVISION_FAILED: refuse('card_declined'),
  INCORRECT_TAV: refuse('card_declined'),
  // Errors about the token.
  INVALID_TOKEN_UNIQUE_REFERENCE: refuse('token_unknown'),
  INVALID_PAN_UNIQUE_REFERENCE: refuse('token_unknown'),
  NO_ACTIVE_TOKENS: refuse('token_unknown'),
  INVALID_TOKEN_STATUS: refuse('token_state'),
  TOKEN_NOT_ACTIVATED: refuse('token_state'),
  // Errors about our request, which is wrong.
  INVALID_JSON: refuse('request_invalid'),
  UNRECOGNIZED_FIELD: refuse('request_invalid'),
  MISSING_REQUIRED_FIELD: refuse('request_invalid'),
  INVALID_FIELD_FORMAT: refuse('request_invalid'),
  INVALID_FIELD_LENGTH: refuse('request_invalid'),
  INVALID_FIELD_VALUE: refuse('request_invalid'),
  INVALID_RESPONSE_HOST: refuse('request_invalid'),
  INVALID_WORKFLOW: refuse('request_invalid'),
  INVALID_TERMS_AND_CONDITIONS: refuse('request_invalid'),
  INVALID_ELIGIBILITY_RECEIPT: refuse('request_invalid'),
  AUTHORIZATION_FAILED: refuse('request_invalid'),
  // Keys of this installation or of MDES are being rotated. An operator must correct that; jobs are repeated until
  // then, so none is lost.
  CRYPTOGRAPHY_ERROR: often,
  AUTHENTICATION_FAILED: often,
  INVALID_CLIENT_ID: often,
  // MDES got the same task before, which is done or in progress.
  DUPLICATE_REQUEST: ask,
  INVALID_TASK_ID: ask,
  REPEAT_REQUEST: ask,
  // MDES or the issuer is down.
  NO_RESPONSE_FROM_ISSUER: once,
  INTERNAL_SERVICE_FAILURE: often,
  SERVICE_UNAVAILABLE: often,
  SYSTEM_ERROR: often,
  RATE_LIMIT_EXCEEDED: often,
}

/** `repeatable`: a repeat of the call is harmless, so nobody needs to ask whether the first call had its effect. */
export function answerOfError(
  code: string | undefined,
  answer: OutboundAnswer,
  repeatable: boolean,
): ProviderAnswer<never> {
  const verdict = answer.status === 429 ? often : (verdictOf(code) ?? verdictOfStatus(answer.status))
  if (verdict.verdict === 'refuse') return { answer: 'refused', reason: verdict.reason }
  if (verdict.verdict === 'again') return { answer: 'again', once: verdict.once, afterMs: retryAfterMs(answer) }
  return repeatable ? { answer: 'again', once: false } : { answer: 'unknown' }
}

function verdictOf(code: string | undefined): ErrorRule | undefined {
  return code !== undefined && Object.hasOwn(MDES_ERRORS, code) ? MDES_ERRORS[code] : undefined
}

function verdictOfStatus(status: number): ErrorRule {
  if (status === 401 || status === 403) return often
  // MDES may still be working on the first call with this id.
  if (status === 408 || status === 409 || status === 425) return ask
  return status >= 400 && status < 500 ? refuse('request_invalid') : ask
}
