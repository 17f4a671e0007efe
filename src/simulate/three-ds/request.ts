// What the simulated directory server reads of an AReq: the members that EMV 2.2 requires of each device channel, and an
// error message for one that lacks them. It judges form, not content.

export interface SimulatedAreq {
  messageVersion: string
  messageCategory: string
  threeDSServerTransID: string
  threeDSServerURL: string
  notificationURL: string
  acctNumber: string
  merchantName: string
  /** Amount and currency, as a cardholder reads them. */
  shownAmount: string
}

const ALWAYS = [
  'messageType',
  'messageVersion',
  'messageCategory',
  'deviceChannel',
  'threeDSServerTransID',
  'threeDSServerURL',
  'threeDSServerRefNumber',
  'threeDSRequestorID',
  'threeDSRequestorName',
  'threeDSRequestorURL',
  'acctNumber',
]
const BY_CHANNEL: Record<string, string[]> = {
  '01': ['threeDSRequestorAuthenticationInd', 'sdkMaxTimeout'],
  '02': [
    'threeDSRequestorAuthenticationInd',
    'browserAcceptHeader',
    'browserJavascriptEnabled',
    'browserLanguage',
    'browserUserAgent',
    'notificationURL',
    'threeDSCompInd',
  ],
  '03': ['threeRIInd'],
}
const OF_PAYMENTS = [
  'acquirerBIN',
  'acquirerMerchantID',
  'mcc',
  'merchantCountryCode',
  'merchantName',
  'purchaseAmount',
  'purchaseCurrency',
  'purchaseExponent',
  'purchaseDate',
]
const WITH_SCRIPTS = [
  'browserColorDepth',
  'browserJavaEnabled',
  'browserScreenHeight',
  'browserScreenWidth',
  'browserTZ',
]

export function readAreq(body: unknown): SimulatedAreq | { error: string; detail: string } {
  const areq = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  if (areq['messageType'] !== 'AReq') return { error: '101', detail: 'messageType' }
  if (!['2.1.0', '2.2.0', '2.3.1'].includes(String(areq['messageVersion'])))
    return { error: '102', detail: 'messageVersion' }
  const required = [
    ...ALWAYS,
    ...(BY_CHANNEL[String(areq['deviceChannel'])] ?? ['deviceChannel']),
    ...(areq['messageCategory'] === '01' ? OF_PAYMENTS : []),
    ...(areq['browserJavascriptEnabled'] === true ? WITH_SCRIPTS : []),
  ]
  const missing = required.filter(name => areq[name] === undefined || areq[name] === '')
  if (missing.length > 0) return { error: '201', detail: missing.join(',') }
  const text = (name: string) => String(areq[name] ?? '')
  if (!/^\d{12,19}$/.test(text('acctNumber'))) return { error: '203', detail: 'acctNumber' }
  return {
    messageVersion: text('messageVersion'),
    messageCategory: text('messageCategory'),
    threeDSServerTransID: text('threeDSServerTransID'),
    threeDSServerURL: text('threeDSServerURL'),
    notificationURL: text('notificationURL'),
    acctNumber: text('acctNumber'),
    merchantName: text('merchantName') || 'A merchant',
    shownAmount: shownAmount(text('purchaseAmount'), Number(areq['purchaseExponent'] ?? 0), text('purchaseCurrency')),
  }
}

/** A few currencies by name, the others by number. */
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

/** An error message of the directory server's. */
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
