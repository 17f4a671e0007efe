// The authentication request (AReq, EMV 3-D Secure 2.2) that a lookup becomes. It holds the card number, so it travels
// as a Secret. What a field may hold was checked with the lookup (lookup-request.ts).
import { assert } from '../../errors.ts'
import { Secret } from '../../secret.ts'
import { countryNumber } from '../../token/country.ts'
import { currencyNumber, minorUnit } from '../../token/currency.ts'
import type { Contract } from '../contract.ts'
import type { DeviceDataInfo, LookupRequest } from '../lookup-request.ts'
import { MESSAGE_VERSION } from '../messages.ts'

/** The card of a lookup once it was opened. */
export interface PlainCard {
  pan: Secret
  /** 1 to 12, and four digits; absent where it isn't known. */
  expiryMonth?: number
  expiryYear?: number
}

/** This 3DS Server, as directory servers know it. */
export interface ServerIdentity {
  /** Where RReq messages are sent. */
  url: string
  refNumber: string
  operatorId: string
}

export type AReq = Secret<Record<string, unknown> & { threeDSServerTransID: string; messageVersion: string }>

const CHANNELS = { SDK: '01', Browser: '02', '3RI': '03' } as const
export const WINDOW_SIZE = '05'

export interface Asking {
  transactionId: string
  request: LookupRequest
  contract: Contract
  card: PlainCard
  server: ServerIdentity
  /** ms since the epoch. */
  now: number
}

export function areqOf({ transactionId, request, contract, card, server, now }: Asking): AReq {
  const exponent = minorUnit(request.currency_code)
  const currency = currencyNumber(request.currency_code)
  assert(exponent !== undefined && currency !== undefined, 'a checked currency has a number and a minor unit')
  const channel = request.device_channel
  return new Secret(
    without({
      messageType: 'AReq',
      messageVersion: MESSAGE_VERSION,
      messageCategory: request.message_category,
      deviceChannel: CHANNELS[channel],
      threeDSServerTransID: transactionId,
      threeDSServerURL: server.url,
      threeDSServerRefNumber: server.refNumber,
      threeDSServerOperatorID: server.operatorId,
      threeDSRequestorID: contract.requestorId,
      threeDSRequestorName: contract.requestorName,
      threeDSRequestorURL: contract.requestorUrl,
      threeDSRequestorAuthenticationInd: channel === '3RI' ? undefined : (request.authentication_indicator ?? '01'),
      threeDSRequestorChallengeInd: request.challenge_indicator,
      threeDSRequestorDecReqInd: 'N',
      threeRIInd: request.three_ri_indicator,
      acctNumber: card.pan.reveal(),
      cardExpiryDate: expiryOf(card),
      acquirerBIN: contract.acquirerBin,
      acquirerMerchantID: contract.acquirerMerchantId,
      mcc: contract.mcc,
      merchantCountryCode: countryNumber(contract.merchantCountry),
      merchantName: contract.merchantName,
      purchaseAmount: String(request.amount),
      purchaseCurrency: currency,
      purchaseExponent: String(exponent),
      purchaseDate: purchaseDate(request.purchase_date, now),
      purchaseInstalData: request.installment === undefined ? undefined : String(request.installment),
      recurringExpiry: request.recurring_end,
      recurringFrequency: request.recurring_frequency === undefined ? undefined : String(request.recurring_frequency),
      ...holderOf(request),
      ...(channel === 'Browser' ? browserOf(request.device_data_info ?? {}, contract) : {}),
      acctInfo: accountOf(request),
      merchantRiskIndicator: riskOf(request),
    }) as Record<string, unknown> & { threeDSServerTransID: string; messageVersion: string },
  )
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

/** The subdivision of ISO 3166-2, at most three characters, without its country; a name has no place in the message. */
function stateOf(given: string | undefined): string | undefined {
  const code = given?.toUpperCase().replace(/^[A-Z]{2}-(?=[A-Z0-9]{1,3}$)/, '')
  return code !== undefined && /^[A-Z0-9]{1,3}$/.test(code) ? code : undefined
}

function holderOf(request: LookupRequest): Record<string, unknown> {
  const country = (code: string | undefined) => (code === undefined ? undefined : countryNumber(code))
  return {
    cardholderName: `${request.billing_first_name} ${request.billing_last_name}`.slice(0, 45),
    email: request.email,
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

/** EMV wants the country's code apart; of a number that doesn't say it nothing is made. */
function phoneOf(given: string | undefined): { cc: string; subscriber: string } | undefined {
  const found = /^\+(\d{1,3})[ .-]([\d ().-]{1,15})$/.exec(given ?? '')
  return found?.[1] && found[2] ? { cc: found[1], subscriber: found[2].replace(/\D/g, '') } : undefined
}

// Required of a browser whether the caller gave them or not.
function browserOf(device: DeviceDataInfo, contract: Contract): Record<string, unknown> {
  const scripted = {
    browserJavaEnabled: device.browser_java_enabled,
    browserColorDepth: device.browser_color_depth,
    browserScreenHeight: device.browser_screen_height,
    browserScreenWidth: device.browser_screen_width,
    browserTZ: device.browser_time_zone,
  }
  // With JavaScript, EMV requires all of these; a browser whose caller left one out counts as without.
  const whole = device.browser_javascript_enabled !== false && Object.values(scripted).every(one => one !== undefined)
  return {
    notificationURL: contract.notificationUrl,
    threeDSCompInd: 'U',
    browserAcceptHeader: device.browser_header ?? '*/*',
    browserIP: device.ip_address,
    browserLanguage: (device.browser_language ?? 'en').slice(0, 8),
    browserUserAgent: device.user_agent ?? 'unknown',
    browserJavascriptEnabled: whole,
    ...(whole ? scripted : {}),
  }
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
    deliveryEmailAddress: request.delivery_email,
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
