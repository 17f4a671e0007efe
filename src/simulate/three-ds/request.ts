// Reads the parts of an AReq that the simulated directory server needs, and makes its error message. members.ts says
// which members a request must and must not hold.
import { faultOf, VERSIONS } from './members.ts'

export interface SimulatedAreq {
  messageVersion: string
  messageCategory: string
  threeDSServerTransID: string
  threeDSServerURL: string
  notificationURL: string
  acctNumber: string
  cardholderName: string
  merchantName: string
  /** Amount and currency in the form that a cardholder sees. */
  shownAmount: string
}

export function readAreq(body: unknown): SimulatedAreq | { error: string; detail: string } {
  const areq = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  if (areq['messageType'] !== 'AReq') return { error: '101', detail: 'messageType' }
  if (!VERSIONS.includes(String(areq['messageVersion']))) return { error: '102', detail: 'messageVersion' }
  const fault = faultOf(areq)
  if (fault) return fault
  const text = (name: string) => String(areq[name] ?? '')
  return {
    messageVersion: text('messageVersion'),
    messageCategory: text('messageCategory'),
    threeDSServerTransID: text('threeDSServerTransID'),
    threeDSServerURL: text('threeDSServerURL'),
    notificationURL: text('notificationURL'),
    acctNumber: text('acctNumber'),
    cardholderName: text('cardholderName'),
    merchantName: text('merchantName') || 'A merchant',
    shownAmount: shownAmount(text('purchaseAmount'), Number(areq['purchaseExponent'] ?? 0), text('purchaseCurrency')),
  }
}

/** Names of a few currencies; others are shown by number. */
const CURRENCIES: Record<string, string> = {
  '036': 'AUD',
  '392': 'JPY',
  '554': 'NZD',
  '826': 'GBP',
  '840': 'USD',
  '978': 'EUR',
}

function shownAmount(minor: string, exponent: number, currency: string): string {
  if (minor === '') return 'none'
  const digits = minor.padStart(exponent + 1, '0')
  const whole = exponent === 0 ? digits : `${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`
  return `${whole} ${CURRENCIES[currency] ?? currency}`
}

/** An error message (Erro) of the directory server. */
export function errorFor(body: unknown, errorCode: string, errorDetail: string): Record<string, unknown> {
  const id = (body as { threeDSServerTransID?: unknown } | null)?.threeDSServerTransID
  return {
    messageType: 'Erro',
    messageVersion: '2.2.0',
    ...(typeof id === 'string' ? { threeDSServerTransID: id } : {}),
    errorCode,
    errorComponent: 'D',
    errorDescription: 'The directory server can not go on.',
    errorDetail,
    errorMessageType: 'AReq',
  }
}
