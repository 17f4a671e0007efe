// The contents of an AReq's members, made from the lookup, its card and its contract. areq.ts decides which members are
// sent.
import { assert } from '../../errors.ts'
import type { Secret } from '../../secret.ts'
import { countryNumber } from '../../token/country.ts'
import { currencyNumber, minorUnit } from '../../token/currency.ts'
import type { Contract } from '../contract.ts'
import type { Network } from '../outcome.ts'
import { isAscii } from './ascii.ts'
import { type DeviceDataInfo, type LookupRequest, minuteOf } from './lookup-request.ts'
import type { Member, Situation } from './table.ts'

/** The decrypted card of a lookup. */
export interface PlainCard {
  pan: Secret
  /** Month 1 to 12, and a four-digit year; undefined if not known. */
  expiryMonth?: number
  expiryYear?: number
}

/** How directory servers know this 3DS Server. */
export interface ServerIdentity {
  /** The URL to which RReq messages are sent. */
  url: string
  refNumber: string
  operatorId: string
}

export interface Asking {
  transactionId: string
  request: LookupRequest
  contract: Contract
  card: PlainCard
  network: Network
  server: ServerIdentity
  /** ms since the epoch. */
  now: number
}

/** Members for which we have no data: those of an app, and how the shop authenticated its customer. */
type Unsent = Extract<Member, `sdk${string}` | 'deviceRenderOptions' | 'threeDSRequestorAuthenticationInfo'>
type Members = Record<Exclude<Member, Unsent>, unknown>

const CHANNELS = { APP: '01', BRW: '02', '3RI': '03' } as const
export function membersOf({ transactionId, request, contract, card, server, now }: Asking, situation: Situation) {
  return {
    messageType: 'AReq',
    messageVersion: situation.version,
    messageCategory: situation.category,
    deviceChannel: CHANNELS[situation.channel],
    threeDSServerTransID: transactionId,
    threeDSServerURL: server.url,
    threeDSServerRefNumber: server.refNumber,
    threeDSServerOperatorID: server.operatorId,
    threeDSRequestorID: contract.requestorId,
    threeDSRequestorName: contract.requestorName,
    threeDSRequestorURL: asciiUrl(contract.requestorUrl),
    threeDSRequestorAuthenticationInd: situation.authenticationInd,
    threeDSRequestorChallengeInd: request.challenge_indicator,
    threeDSRequestorDecReqInd: 'N',
    threeDSRequestorPriorAuthenticationInfo: priorOf(request),
    threeRIInd: situation.threeRIInd,
    acctNumber: card.pan.reveal(),
    cardExpiryDate: expiryOf(card),
    acquirerBIN: contract.acquirerBin,
    acquirerMerchantID: contract.acquirerMerchantId,
    mcc: contract.mcc,
    merchantCountryCode: countryNumber(contract.merchantCountry),
    merchantName: contract.merchantName,
    transType: TRANSACTION_TYPES.get(String(request.product_code)) ?? PURCHASE,
    ...purchaseOf(request, now),
    ...holderOf(request),
    ...browserOf(request.device_data_info ?? {}, contract, situation),
    acctInfo: accountOf(request),
    merchantRiskIndicator: riskOf(request),
  } satisfies Members
}

/** A URL in ASCII. It isn't transliterated, because that would make it another URL. */
function asciiUrl(url: string): string {
  return isAscii(url) ? url : new URL(url).href
}

/** transType 01: goods and services. */
const PURCHASE = '01'
/** Product code → transType: goods, check acceptance, account funding, quasi-cash, prepaid activation and load. */
const TRANSACTION_TYPES: ReadonlyMap<string, string> = new Map([
  ['PHY', PURCHASE],
  ['CHA', '03'],
  ['ACF', '10'],
  ['QCT', '11'],
  ['PAL', '28'],
])

/** EMV's date for a series without an agreed end. */
const NO_END = '99991231'

function purchaseOf(request: LookupRequest, now: number) {
  const exponent = minorUnit(request.currency_code)
  const currency = currencyNumber(request.currency_code)
  assert(exponent !== undefined && currency !== undefined, 'a checked currency has a number and a minor unit')
  return {
    purchaseAmount: String(request.amount),
    purchaseCurrency: currency,
    purchaseExponent: String(exponent),
    purchaseDate: purchaseDate(request.purchase_date, now),
    purchaseInstalData: textOf(request.installment),
    recurringExpiry: request.recurring_end ?? NO_END,
    recurringFrequency: textOf(request.recurring_frequency),
  }
}

/** How the cardholder was authenticated before. The lookup's schema has checked the forms. */
function priorOf(request: LookupRequest): Record<string, unknown> | undefined {
  const text = (value: string | number | undefined) => (value === undefined || value === '' ? undefined : String(value))
  const time = text(request.prior_authentication_time)
  return filled({
    threeDSReqPriorAuthData: text(request.prior_authentication_data),
    threeDSReqPriorAuthMethod: text(request.prior_authentication_method)?.padStart(2, '0'),
    threeDSReqPriorAuthTimestamp: time === undefined ? undefined : minuteOf(time),
    threeDSReqPriorRef: text(request.prior_authentication_ref),
  })
}

/** YYMM. */
function expiryOf({ expiryMonth, expiryYear }: PlainCard): string | undefined {
  if (expiryMonth === undefined || expiryYear === undefined) return undefined
  return `${String(expiryYear % 100).padStart(2, '0')}${String(expiryMonth).padStart(2, '0')}`
}

/** YYYYMMDDHHMMSS, UTC. */
function purchaseDate(given: string | undefined, now: number): string {
  if (given === undefined) return compact(new Date(now))
  const digits = given.replaceAll('-', '')
  if (/^\d{14}$/.test(digits)) return digits
  if (/^\d{8}$/.test(digits)) return `${digits}000000`
  return compact(new Date(given))
}

function compact(moment: Date): string {
  return moment.toISOString().replace(/\D/g, '').slice(0, 14)
}

/**
 * The subdivision part of ISO 3166-2, at most three characters, without the country; undefined for a name, which the
 * message can't hold.
 */
function stateOf(given: string | undefined): string | undefined {
  const code = given?.toUpperCase().replace(/^[A-Z]{2}-(?=[A-Z0-9]{1,3}$)/, '')
  return code !== undefined && /^[A-Z0-9]{1,3}$/.test(code) ? code : undefined
}

function holderOf(request: LookupRequest) {
  const country = (code: string | undefined) => (code === undefined ? undefined : countryNumber(code))
  return {
    cardholderName: `${request.billing_first_name} ${request.billing_last_name}`,
    email: dotAtom(request.email),
    addrMatch: request.address_match,
    billAddrLine1: request.billing_address_1,
    billAddrLine2: request.billing_address_2,
    billAddrLine3: request.billing_address_3,
    billAddrCity: request.billing_city,
    billAddrState: stateOf(request.billing_state),
    billAddrPostCode: request.billing_postal_code,
    billAddrCountry: country(request.billing_country_code),
    shipAddrLine1: request.shipping_address_1,
    shipAddrLine2: request.shipping_address_2,
    shipAddrLine3: request.shipping_address_3,
    shipAddrCity: request.shipping_city,
    shipAddrState: stateOf(request.shipping_state),
    shipAddrPostCode: request.shipping_postal_code,
    shipAddrCountry: country(request.shipping_country_code),
    mobilePhone: phoneOf(request.phone_number ?? request.billing_phone),
    workPhone: phoneOf(request.work_phone),
  }
}

/** EMV requires the country code as a separate member; undefined for a number that doesn't show its country code. */
function phoneOf(given: string | undefined): { cc: string; subscriber: string } | undefined {
  const found = /^\+(\d{1,3})[ .-]([\d ().-]{1,15})$/.exec(given ?? '')
  return found?.[1] && found[2] ? { cc: found[1], subscriber: found[2].replace(/\D/g, '') } : undefined
}

/**
 * The address if it is a dot-atom (RFC 5322, 3.4). HTML also accepts addresses with a dot at an end or two dots in a
 * row.
 */
function dotAtom(address: string | undefined): string | undefined {
  return address !== undefined && /^[^.@]+(\.[^.@]+)*@/.test(address) ? address : undefined
}

// Members that a browser request must have, whether or not the caller gave them.
function browserOf(device: DeviceDataInfo, contract: Contract, { hasScripts }: Situation) {
  return {
    notificationURL: asciiUrl(contract.notificationUrl),
    threeDSCompInd: 'U',
    browserAcceptHeader: device.browser_header ?? '*/*',
    browserIP: device.ip_address,
    browserLanguage: (device.browser_language ?? 'en').slice(0, 8),
    browserUserAgent: device.user_agent ?? 'unknown',
    browserJavascriptEnabled: hasScripts,
    browserJavaEnabled: device.browser_java_enabled,
    browserColorDepth: colorDepth(device.browser_color_depth),
    browserScreenHeight: device.browser_screen_height,
    browserScreenWidth: device.browser_screen_width,
    browserTZ: device.browser_time_zone,
  }
}

const COLOR_DEPTHS = [48, 32, 24, 16, 15, 8, 4, 1]

/** The next lower colour depth of EMV's list; browsers also report others, such as 30. */
function colorDepth(reported: string | undefined): string | undefined {
  const depth = COLOR_DEPTHS.find(one => one <= Number(reported))
  return depth === undefined ? undefined : String(depth)
}

function accountOf(request: LookupRequest): Record<string, unknown> | undefined {
  return filled({
    chAccAgeInd: request.account_age_indicator,
    chAccChange: request.account_change_date,
    chAccChangeInd: request.account_change_indicator,
    chAccDate: request.account_create_date,
    chAccPwChange: request.account_pwd_change_date,
    chAccPwChangeInd: request.account_pwd_change_indicator,
    nbPurchaseAccount: textOf(request.account_purchases),
    provisionAttemptsDay: textOf(request.add_card_attempts),
    paymentAccAge: request.payment_account_age,
    paymentAccInd: request.payment_account_indicator,
    txnActivityDay: textOf(request.transaction_count_day),
    txnActivityYear: textOf(request.transaction_count_year),
    shipAddressUsage: request.shipping_address_usage_date,
    shipAddressUsageInd: request.shipping_address_usage_indicator,
    shipNameIndicator: request.shipping_name_indicator,
  })
}

function riskOf(request: LookupRequest): Record<string, unknown> | undefined {
  const currency = request.gift_card_currency_code
  return filled({
    deliveryEmailAddress: dotAtom(request.delivery_email),
    deliveryTimeframe: request.delivery_time_frame,
    giftCardAmount: textOf(request.gift_card_amount),
    giftCardCount: request.gift_card_count === undefined ? undefined : String(request.gift_card_count).padStart(2, '0'),
    giftCardCurr: currency === undefined ? undefined : currencyNumber(currency),
    preOrderDate: request.pre_order_date,
    preOrderPurchaseInd: request.pre_order_indicator,
    reorderItemsInd: request.reorder_indicator,
    shipIndicator: request.shipping_method_indicator,
  })
}

const textOf = (count: number | undefined) => (count === undefined ? undefined : String(count))

function without(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

function filled(members: Record<string, unknown>): Record<string, unknown> | undefined {
  const given = without(members)
  return Object.keys(given).length > 0 ? given : undefined
}
