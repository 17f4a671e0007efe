// Applies a message to an authentication. The result is the record with its new state, findings and secrets, or the
// reason why nothing changes. Pure; lookup.ts, result.ts and validate.ts save the record and answer.
import { Secret } from '../secret.ts'
import { holdsPan } from '../token/pan.ts'
import { type ARes, creqText, type Erro } from './messages.ts'
import { ECIS, type EciCase, type FinalOutcome, type Outcome } from './outcome.ts'
import { ERRORS, NO_ERROR } from './problem.ts'
import type { Authentication, Findings, Secrets } from './record.ts'
import { type Event, follow, type State, type WhyIgnored } from './transition.ts'

/** How long a cardholder may take for a challenge. */
export const CHALLENGE_MS = 30 * 60_000
/** An authentication without an answer ends as U after this time. */
export const OPEN_MS = 10 * 60_000

export type Applied = { record: Authentication; ignored?: undefined } | { record?: undefined; ignored: WhyIgnored }

interface Change {
  findings: Findings
  /** The ECI that the directory server sent; it takes precedence over the ECI table. */
  eci?: string | undefined
  /** The key into the ECI table if the directory server sent none. */
  eciCase: EciCase | 'C'
  secrets?: Secrets
  pendingUntil?: number
}

function apply(record: Authentication, event: Event, now: number, change: (next: State) => Change): Applied {
  const verdict = follow(record.state, event)
  if (verdict.next === undefined) return { ignored: verdict.ignored }
  const { findings, secrets = {}, pendingUntil = record.pendingUntil, ...sent } = change(verdict.next)
  const eci =
    sent.eciCase === 'C' ? undefined : (sent.eci ?? ECIS[record.network][record.messageCategory][sent.eciCase])
  return {
    record: {
      ...record,
      state: verdict.next,
      findings: { ...record.findings, ...findings, ...(eci === undefined ? {} : { eci_flag: eci }) },
      secrets: new Secret(secrets),
      askedUntil: 0,
      pendingUntil,
      updatedAt: now,
      version: record.version + 1,
    },
  }
}

/**
 * transStatus → the shown status. I (informational: no challenge was wanted) is shown as U. D is missing, because it is
 * only sent to requestors that ask for it.
 */
const ANSWERS = { Y: 'Y', A: 'A', N: 'N', U: 'U', R: 'R', C: 'C', I: 'U' } as const

interface AnswerFacts {
  now: number
  windowSize: string
  pan: Secret
  /** The request is the merchant's next payment of a series (3RI indicator 01). */
  isRecurring?: boolean
}

/** Applies the directory server's answer. An unusable answer ends the authentication as U with error 511. */
export function applyAnswer(record: Authentication, ares: ARes, facts: AnswerFacts): Applied {
  if (!isUsable(record, ares, facts.pan)) return applyFailure(record, { error: 511 }, facts.now)
  const outcome = ANSWERS[ares.transStatus as keyof typeof ANSWERS]
  return apply(record, `answer-${outcome}`, facts.now, () => ({
    findings: findingsOf(ares, outcome),
    eci: ares.eci,
    ...(outcome === 'C'
      ? {
          eciCase: outcome,
          secrets: { payload: challengeOf(record, ares, facts.windowSize) },
          pendingUntil: facts.now + CHALLENGE_MS,
        }
      : { eciCase: eciCaseOf(ares, outcome, facts), secrets: given('cavv', ares.authenticationValue) }),
  }))
}

function findingsOf(ares: ARes, outcome: Outcome): Findings {
  return {
    threeds_version: ares.messageVersion,
    enrolled: 'Y',
    ds_transaction_id: ares.dsTransID,
    acs_transaction_id: ares.acsTransID,
    challenge_required: outcome === 'C' ? 'Y' : 'N',
    error_no: NO_ERROR,
    ...(outcome === 'C' ? {} : { signature_verification: 'Y' }),
    ...given('acs_url', ares.acsURL),
    ...given('status_reason', ares.transStatusReason),
    ...given('authentication_type', ares.authenticationType),
    ...given('cardholder_info', ares.cardholderInfo),
    ...given('acs_rendering_type', renderingOf(ares)),
  }
}

/** transStatusReason 80 with status U: Mastercard took the data without an authentication. */
const DATA_ONLY = '80'

function eciCaseOf(ares: ARes, outcome: FinalOutcome, { isRecurring }: AnswerFacts): EciCase {
  if (ares.transStatus === 'I') return 'exempt'
  if (outcome === 'U' && ares.transStatusReason === DATA_ONLY) return 'data-only'
  return outcome === 'Y' && isRecurring ? 'recurring' : outcome
}

/**
 * Whether the answer can be used. The authentication value may be missing or have any form: whatever was sent is the
 * outcome.
 */
function isUsable(record: Authentication, ares: ARes, pan: Secret): boolean {
  if (ares.threeDSServerTransID !== record.transactionId || ares.transStatus === 'D') return false
  // No message has a reason to contain the card number, and these texts would be stored in clear.
  if ([ares.cardholderInfo, ares.acsURL].some(text => text !== undefined && holdsPan(text, pan.reveal()))) return false
  return ares.transStatus !== 'C' || ares.acsURL !== undefined
}

function challengeOf(record: Authentication, ares: ARes, challengeWindowSize: string): string {
  const { messageVersion, acsTransID } = ares
  return creqText({ messageVersion, threeDSServerTransID: record.transactionId, acsTransID, challengeWindowSize })
}

function renderingOf({ acsRenderingType: type }: ARes): string | undefined {
  return type && `${type.acsInterface}${type.acsUiTemplate}`
}

function given<K extends string>(name: K, value: string | undefined): { [key in K]?: string } {
  return (value === undefined ? {} : { [name]: value }) as { [key in K]?: string }
}

/**
 * Ends an authentication for which no usable answer will come. 511: the answer was malformed; 512: the directory server
 * refused, and its error code is stored (its text isn't).
 */
export function applyFailure(
  record: Authentication,
  { error, erro }: { error: 511 | 512; erro?: Erro | undefined },
  now: number,
): Applied {
  return apply(record, 'failed', now, () => ({
    eciCase: 'U',
    findings: {
      // The directory server sends error code 305 for card numbers that no issuer has enrolled.
      enrolled: erro?.errorCode === '305' ? 'N' : 'U',
      error_no: String(error),
      error_desc: ERRORS[error].text,
      ...(erro ? { reason_code: erro.errorCode, reason_desc: reasonText(erro.errorCode) } : {}),
    },
  }))
}

/** The end of a challenge, whichever message reported it. */
export interface Result {
  outcome: FinalOutcome
  eci?: string | undefined
  cavv?: string | undefined
  statusReason?: string | undefined
  challengeCancel?: string | undefined
  authenticationType?: string | undefined
  xid?: string | undefined
}

/** Applies the end of a challenge: Y, N, U, A or R, as it was sent. */
export function applyResult(record: Authentication, result: Result, now: number): Applied {
  return apply(record, `result-${result.outcome}`, now, () => ({
    eci: result.eci,
    eciCase: result.outcome,
    findings: {
      signature_verification: 'Y',
      ...given('status_reason', result.statusReason),
      ...given('challenge_cancel', result.challengeCancel),
      ...given('authentication_type', result.authenticationType),
      ...given('xid', result.xid),
    },
    secrets: given('cavv', result.cavv),
  }))
}

/** Ends an authentication that got no result in time. */
export function applyExpiry(record: Authentication, now: number): Applied {
  if (now < record.pendingUntil) return { ignored: 'early' }
  const error = record.state === 'C' ? 513 : 502
  return apply(record, 'expired', now, () => ({
    eciCase: 'U',
    findings: {
      error_no: String(error),
      error_desc: ERRORS[error].text,
      ...(record.state === 'C' ? {} : { enrolled: 'U' }),
    },
  }))
}

const REASON_TEXTS: Readonly<Record<string, string>> = {
  101: 'Message received invalid',
  102: 'Message version number not supported',
  103: 'Sent messages limit exceeded',
  201: 'Required data element missing',
  202: 'Critical message extension not recognised',
  203: 'Format of one or more data elements is invalid',
  204: 'Duplicate data element',
  301: 'Transaction ID not recognised',
  302: 'Data decryption failure',
  303: 'Access denied, invalid endpoint',
  304: 'ISO code invalid',
  305: 'Transaction data not valid',
  306: 'Merchant category code not valid for payment system',
  307: 'Serial number not valid',
  402: 'Transaction timed out',
  403: 'Transient system failure',
  404: 'Permanent system failure',
  405: 'System connection failure',
}

/** EMV's own name for the error code; the sender's text may hold anything, so it isn't used. */
function reasonText(errorCode: string): string {
  return REASON_TEXTS[errorCode] ?? 'Unknown error code'
}
