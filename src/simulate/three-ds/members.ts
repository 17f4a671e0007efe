// The simulated directory server's rules for an AReq (EMV 3-D Secure 2.1 to 2.3.1): which members each device channel,
// message category and protocol version requires, which must be absent, and the form of some values.
import { isMastercards, networkOf } from './values.ts'

type Areq = Record<string, unknown>
interface Fault {
  /** 201: a required member is missing. 203: a member must be absent here, or has the wrong form. */
  error: '201' | '203'
  /** The names of the wrong members. */
  detail: string
}

export const VERSIONS: readonly string[] = ['2.1.0', '2.2.0', '2.3.1']

const APP = '01'
const BROWSER = '02'
const THREE_RI = '03'
const list = (names: string) => names.split(' ')

const ALWAYS = list(
  'messageType messageVersion messageCategory deviceChannel threeDSServerTransID threeDSServerURL threeDSServerRefNumber threeDSRequestorID threeDSRequestorName threeDSRequestorURL acctNumber',
)
const SDK = list('deviceRenderOptions sdkAppID sdkEncData sdkEphemPubKey sdkMaxTimeout sdkReferenceNumber sdkTransID')
const BROWSERS = list('browserAcceptHeader browserLanguage browserUserAgent notificationURL threeDSCompInd')
const SCRIPTED = list('browserColorDepth browserJavaEnabled browserScreenHeight browserScreenWidth browserTZ')
const MERCHANT = list('acquirerBIN acquirerMerchantID mcc merchantCountryCode merchantName')
const PURCHASE = list('purchaseAmount purchaseCurrency purchaseExponent purchaseDate')
const SERIES = list('recurringExpiry recurringFrequency')
const INTERACTIVE = list('addrMatch threeDSRequestorChallengeInd threeDSRequestorAuthenticationInfo')
const SINCE_2_2 = list('browserJavascriptEnabled threeDSRequestorDecReqInd')

export function faultOf(areq: Areq): Fault | undefined {
  const required = requiredOf(areq)
  const missing = required.filter(name => areq[name] === undefined || areq[name] === '')
  if (missing.length > 0) return { error: '201', detail: missing.join(',') }
  const wrong = [...misplacedIn(areq, required), ...malformedIn(areq)]
  return wrong.length > 0 ? { error: '203', detail: wrong.join(',') } : undefined
}

/** The members that a payment, and a series of payments, requires. */
function requiredOf(areq: Areq): string[] {
  const text = (name: string) => String(areq[name] ?? '')
  const channel = text('deviceChannel')
  const isPayment = text('messageCategory') === '01'
  const [kind, reason] = [text('threeDSRequestorAuthenticationInd'), text('threeRIInd')]
  const isSeries = ['02', '03'].includes(kind) || ['01', '02'].includes(reason)
  const isPurchase = ['02', '03'].includes(kind) || list('01 02 06 07 08 09 11').includes(reason)
  const isOld = text('messageVersion') === '2.1.0'
  const hasScripts = isOld || areq['browserJavascriptEnabled'] === true
  return [
    ...ALWAYS,
    ...(channel === APP ? SDK : []),
    ...(channel === BROWSER ? BROWSERS : []),
    ...(channel === BROWSER && !isOld ? ['browserJavascriptEnabled'] : []),
    ...(channel === BROWSER && hasScripts ? SCRIPTED : []),
    channel === THREE_RI ? 'threeRIInd' : 'threeDSRequestorAuthenticationInd',
    ...(isPayment ? MERCHANT : []),
    ...(isPayment || isPurchase ? PURCHASE : []),
    ...(isSeries ? SERIES : []),
    ...(kind === '03' || reason === '02' ? ['purchaseInstalData'] : []),
    ...(areq['shipAddrState'] === undefined ? [] : ['shipAddrCountry']),
    ...(channel === THREE_RI && isPayment && isMastercards(networkOf(text('acctNumber')))
      ? ['threeDSRequestorPriorAuthenticationInfo']
      : []),
  ]
}

/** Members that belong to another channel, category or version, or to a series although the request isn't one. */
function misplacedIn(areq: Areq, required: readonly string[]): string[] {
  const channel = String(areq['deviceChannel'])
  const foreign = [
    ...(channel === APP ? [] : SDK),
    ...(channel === BROWSER ? [] : [...BROWSERS, ...SCRIPTED, 'browserJavascriptEnabled', 'browserIP']),
    ...(channel === THREE_RI ? [...INTERACTIVE, 'threeDSRequestorAuthenticationInd'] : ['threeRIInd']),
    ...(areq['messageCategory'] === '01' ? [] : ['transType']),
    ...(areq['messageVersion'] === '2.1.0' ? SINCE_2_2 : []),
    ...[...PURCHASE, ...SERIES, ...SCRIPTED, 'purchaseInstalData'].filter(name => !required.includes(name)),
  ]
  return [...new Set(foreign)].filter(name => areq[name] !== undefined)
}

/** The forms of some members, which are checked if present. */
const FORMS: Readonly<Record<string, RegExp>> = {
  acctNumber: /^\d{13,19}$/,
  browserColorDepth: /^(1|4|8|15|16|24|32|48)$/,
  cardholderName: /^.{2,45}$/,
  email: /^[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@[\w-]+(\.[\w-]+)*$/,
  purchaseDate: /^\d{14}$/,
  recurringExpiry: /^\d{8}$/,
  recurringFrequency: /^\d{1,4}$/,
  purchaseInstalData: /^\d{1,3}$/,
  shipAddrState: /^.{1,3}$/,
  transType: /^(01|03|10|11|28)$/,
}

function malformedIn(areq: Areq): string[] {
  const misshapen = Object.entries(FORMS)
    .filter(([name, form]) => areq[name] !== undefined && !form.test(String(areq[name])))
    .map(([name]) => name)
  if (areq['messageVersion'] === '2.3.1') return misshapen
  const foreign = Object.entries(areq).filter(([, value]) => /[^\x20-\x7e]/.test(JSON.stringify(value)))
  return [...misshapen, ...foreign.map(([name]) => name)]
}
