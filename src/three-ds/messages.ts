// The EMV 3-D Secure messages of other parties: their form and limits, only for the members that are used here. Unknown
// members are ignored, as the standard requires. apply-message.ts interprets the messages;
// browser-return.ts reads what a browser brings.
import { z } from 'zod'
import { isPrintable } from '../job/envelope/text.ts'

/** The protocol version that this service sends. */
export const MESSAGE_VERSION = '2.2.0'
export const VERSIONS = ['2.1.0', '2.2.0', '2.3.1'] as const

const id = () => z.guid().toLowerCase()
const version = () => z.enum(VERSIONS)
const printable = (most: number) => z.string().min(1).max(most).refine(isPrintable)
// A member that is only recorded and passed on. A malformed value counts as absent, because it is no reason to lose the
// outcome.
const recorded = <T extends z.ZodType>(form: T) => form.optional().catch(undefined)
/**
 * A code of a network or of another protocol version, kept as sent. It has at most ten characters, which can't be a
 * card number.
 */
const word = () => recorded(printable(10))
export const eci = () => recorded(z.string().length(2).refine(isPrintable))
export const xid = () => recorded(z.string().regex(/^[A-Za-z0-9+/=_-]{1,64}$/))
/** CAVV, AAV or AEVV: up to 4,000 characters of any alphabet. Version 2.3.1 has the longest. */
export const authenticationValue = () => recorded(z.string().min(1).max(4_000))
const rendering = () => recorded(z.object({ acsInterface: printable(2), acsUiTemplate: printable(2) }))

/** An ARes. The statuses I (2.2, 2.3) and D are read and mapped; S never comes to this service. */
export const ARes = z.object({
  messageType: z.literal('ARes'),
  messageVersion: version(),
  threeDSServerTransID: id(),
  dsTransID: id(),
  acsTransID: id(),
  transStatus: z.enum(['Y', 'A', 'N', 'U', 'R', 'C', 'D', 'I']),
  transStatusReason: word(),
  eci: eci(),
  authenticationValue: authenticationValue(),
  // Only a challenge needs this URL; a challenge without it can't be used.
  acsURL: recorded(z.url({ protocol: /^https?$/ }).max(2048)),
  acsRenderingType: rendering(),
  authenticationType: word(),
  cardholderInfo: recorded(printable(128)),
})
export type ARes = z.infer<typeof ARes>

export const Erro = z.object({
  messageType: z.literal('Erro'),
  messageVersion: z.string().max(8),
  threeDSServerTransID: id().optional(),
  errorCode: z.string().regex(/^\d{3}$/),
  errorComponent: z.enum(['C', 'S', 'D', 'A']),
  errorDescription: z.string().max(2048),
})
export type Erro = z.infer<typeof Erro>

export const RReq = z.object({
  messageType: z.literal('RReq'),
  messageVersion: version(),
  threeDSServerTransID: id(),
  dsTransID: id(),
  acsTransID: id(),
  transStatus: z.enum(['Y', 'A', 'N', 'U', 'R']),
  transStatusReason: word(),
  eci: eci(),
  authenticationValue: authenticationValue(),
  authenticationType: word(),
  challengeCancel: word(),
})
export type RReq = z.infer<typeof RReq>

export interface RRes {
  messageType: 'RRes'
  messageVersion: string
  threeDSServerTransID: string
  dsTransID: string
  acsTransID: string
  /** 01: the result was received and will be processed. */
  resultsStatus: '01'
}

/** The text that is posted to the ACS as `creq`: base64url of its JSON, without padding. */
export function creqText(challenge: {
  messageVersion: string
  threeDSServerTransID: string
  acsTransID: string
  challengeWindowSize: string
}): string {
  return Buffer.from(JSON.stringify({ messageType: 'CReq', ...challenge })).toString('base64url')
}

/**
 * The answer to a message that can't be used. The codes are EMV's: 101 unknown message, 203 wrong format, 301 unknown
 * id.
 */
export function erro(
  errorCode: '101' | '203' | '301' | '305' | '402',
  errorMessageType: string,
  transId?: string,
): Erro & {
  errorMessageType: string
  errorDetail: string
} {
  return {
    messageType: 'Erro',
    messageVersion: MESSAGE_VERSION,
    ...(transId === undefined ? {} : { threeDSServerTransID: transId }),
    errorComponent: 'S',
    errorCode,
    errorDescription: ERRO_TEXTS[errorCode],
    errorDetail: ERRO_TEXTS[errorCode],
    errorMessageType,
  }
}
const ERRO_TEXTS = {
  101: 'Message received is not valid for the receiving component.',
  203: 'Format of one or more data elements is invalid.',
  301: 'Transaction ID received is not valid for the receiving component.',
  305: 'Transaction data is not valid.',
  402: 'Transaction timed out.',
} as const
