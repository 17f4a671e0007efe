// The JSON of MDES Digital Enablement: the members that we send, and those that we read of answers. Other members of an
// answer are ignored, as Mastercard asks of its callers; if a member that we read is missing, the answer counts as
// unreadable.
import { z } from 'zod'
import type { OutboundAnswer } from '../outbound.ts'
import { Secret } from '../secret.ts'
import { EncryptedPayload } from './mastercard.ts'
import { PROVIDER_STATES, type ProviderToken, type ProvisionCard } from './provider.ts'

const reference = z.string().regex(/^[!-~]{1,64}$/)
const suspender = z.string().max(32)

export const TokenStatus = z.object({
  tokenUniqueReference: reference,
  status: z.enum(PROVIDER_STATES),
  suspendedBy: z.array(suspender).max(8).default([]),
  statusTimestamp: z.string().max(35).optional(),
})
export type TokenStatus = z.infer<typeof TokenStatus>

/** The token's expiry is MMYY. */
const TokenInfo = z.object({
  tokenExpiry: z.string().regex(/^(0[1-9]|1[0-2])\d\d$/),
  accountPanSuffix: z.string().max(8).optional(),
})

export const TokenizeAnswer = z.discriminatedUnion('decision', [
  z.object({
    decision: z.enum(['APPROVED', 'REQUIRE_ADDITIONAL_AUTHENTICATION']),
    tokenUniqueReference: reference,
    tokenInfo: TokenInfo.optional(),
    tokenDetail: EncryptedPayload.optional(),
  }),
  z.object({ decision: z.literal('DECLINED') }),
])

export const GetTokenAnswer = z.object({
  token: z.object({ ...TokenStatus.shape, tokenInfo: TokenInfo.optional() }),
  tokenDetail: EncryptedPayload.optional(),
})

/** The answer of suspend, unsuspend and delete: one entry per token, with its error if there was one. */
export const TokensAnswer = z.object({
  tokens: z
    .array(
      z.union([
        TokenStatus,
        z.object({ tokenUniqueReference: reference, errorCode: z.string().max(100), status: z.undefined().optional() }),
      ]),
    )
    .max(10),
})

export const SearchAnswer = z.object({
  tokens: z
    .array(z.object({ ...TokenStatus.shape, tokenInfo: TokenInfo.optional() }))
    .max(1_000)
    .default([]),
})

export const TaskAnswer = z.object({ status: z.enum(['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED']) })

/** The decrypted content of `tokenDetail`. */
export const TokenDetail = z.object({
  tokenNumber: z
    .string()
    .regex(/^\d{9,19}$/)
    .optional(),
  expiryMonth: z
    .string()
    .regex(/^(0?[1-9]|1[0-2])$/)
    .optional(),
  expiryYear: z
    .string()
    .regex(/^\d\d$/)
    .optional(),
  paymentAccountReference: z.string().max(64).optional(),
})
export type TokenDetail = z.infer<typeof TokenDetail>

export const NETWORK_TOKEN_DIGITS_MAX = 16
const PAR = /^[0-9A-Z]{29}$/

/** The PAR, if the text has the form that the card schemes define; else undefined. */
export function readPar(text: string | undefined): string | undefined {
  return text !== undefined && PAR.test(text) ? text : undefined
}

/** Reads MMYY as month and year of this century. */
export function readExpiry(mmyy: string | undefined): {
  expiryMonth: number | undefined
  expiryYear: number | undefined
} {
  if (mmyy === undefined) return { expiryMonth: undefined, expiryYear: undefined }
  return { expiryMonth: Number(mmyy.slice(0, 2)), expiryYear: 2000 + Number(mmyy.slice(2)) }
}

const SUSPENDERS = ['ISSUER', 'TOKEN_REQUESTOR', 'CARDHOLDER'] as const

export function readSuspenders(suspendedBy: readonly string[]): ProviderToken['suspendedBy'] {
  return [...new Set(suspendedBy.map(by => SUSPENDERS.find(known => known === by) ?? 'OTHER'))]
}

export function readToken(
  status: TokenStatus,
  info: { tokenExpiry: string } | undefined,
  detail: TokenDetail | undefined,
): ProviderToken {
  const number = detail?.tokenNumber
  const ofDetail =
    detail?.expiryMonth && detail.expiryYear ? detail.expiryMonth.padStart(2, '0') + detail.expiryYear : undefined
  return {
    reference: status.tokenUniqueReference,
    state: status.status,
    suspendedBy: readSuspenders(status.suspendedBy),
    number: number !== undefined && number.length <= NETWORK_TOKEN_DIGITS_MAX ? new Secret(number) : undefined,
    ...readExpiry(ofDetail ?? info?.tokenExpiry),
    par: readPar(detail?.paymentAccountReference),
  }
}

/**
 * The content of `fundingAccountInfo` before encryption. The holder's name is cut to the length that the network
 * accepts.
 */
export function fundingAccount(card: ProvisionCard) {
  const { cardHolderName } = card
  return {
    cardAccountData: {
      accountNumber: card.pan.reveal(),
      expiryMonth: String(card.expiryMonth).padStart(2, '0'),
      expiryYear: String(card.expiryYear % 100).padStart(2, '0'),
    },
    ...(cardHolderName === undefined ? {} : { accountHolderData: { accountHolderName: cardHolderName.slice(0, 27) } }),
    source: 'ACCOUNT_ON_FILE',
  }
}

/** The body as an object; undefined if it isn't a JSON object. */
export function readJson(answer: OutboundAnswer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(answer.body.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

const Failure = z.object({
  errorCode: z.string().max(100).optional(),
  reasonCode: z.string().max(100).optional(),
})
const GatewayError = z.object({ ReasonCode: z.string().max(100).optional() })
// One error or several, in two spellings: the API gateway answers `Error: [...]`, MDES the error object itself.
const Failures = z.object({
  Errors: z
    .union([
      z.object({ Error: z.union([z.array(GatewayError).min(1), GatewayError]) }),
      Failure,
      z.array(Failure).min(1),
    ])
    .optional(),
  errors: z.array(Failure).min(1).optional(),
  errorCode: z.string().max(100).optional(),
})

/** The error code in an answer of the API gateway or of MDES, whatever its HTTP status. */
export function errorCodeOf(body: Record<string, unknown> | undefined): string | undefined {
  const parsed = Failures.safeParse(body)
  if (!parsed.success) return undefined
  const { Errors, errors, errorCode } = parsed.data
  const listed = errors?.[0] ?? (Array.isArray(Errors) ? Errors[0] : Errors)
  if (listed === undefined) return errorCode
  if ('Error' in listed) {
    const first = Array.isArray(listed.Error) ? listed.Error[0] : listed.Error
    return first?.ReasonCode
  }
  const failure = Failure.parse(listed)
  return failure.reasonCode ?? failure.errorCode ?? errorCode
}
