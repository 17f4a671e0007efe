// The request of a lookup, with all limits. Fields that callers of this interface send, but that aren't used here, are
// accepted and ignored. The card is checked elsewhere.
import { z } from 'zod'
import {
  emailAddress,
  encryptedCard,
  isPrintable,
  alias as keyAlias,
  text,
  tokenId,
  uuid,
} from '../../job/envelope/text.ts'
import { countryNumber } from '../../token/country.ts'
import { isCurrency, minorUnit } from '../../token/currency.ts'
import { isGiven, missingFields } from './admission.ts'
import { isAscii } from './ascii.ts'

const LIMITS = { name: 22, address: 50, postalCode: 16, phone: 20, amount: 999_999_999_999 } as const

const oneOf = <const T extends readonly [string, ...string[]]>(...values: T) => z.enum(values)
const digits = (from: number, to: number) =>
  oneOf(...(Array.from({ length: to - from + 1 }, (_, n) => String(from + n).padStart(2, '0')) as [string]))

const name = () => text(1, LIMITS.name)
const line = () => text(1, LIMITS.address)
const phone = () => z.string().regex(/^[0-9+(). -]{1,20}$/)
const country = () =>
  z.string().refine(code => countryNumber(code) !== undefined, { params: { reason: 'field_value' } })
const currency = () =>
  z.string().refine(code => isCurrency(code, 'current') && minorUnit(code) !== undefined, {
    params: { reason: 'field_value' },
  })
const count = (most: number) => z.int().min(0).max(most)
/** A date as `YYYY-MM-DD` or `YYYYMMDD`. The result is `YYYYMMDD`, which EMV uses. */
const day = () =>
  z
    .string()
    .regex(/^\d{4}-?\d\d-?\d\d$/)
    .transform(value => value.replaceAll('-', ''))
    .refine(isDay, { params: { reason: 'field_format' } })

function isDay(value: string): boolean {
  const iso = `${value.slice(0, 4)}-${value.slice(4, 6)}-${value.slice(6)}`
  return !Number.isNaN(Date.parse(iso)) && new Date(iso).toISOString().startsWith(iso)
}

/** The text as YYYYMMDDHHMM in UTC. Accepted are that form, the same with seconds, and an RFC 3339 time. */
export function minuteOf(text: string): string | undefined {
  const [, day, hour, minute] = /^(\d{8})(\d\d)(\d\d)(?:\d\d)?$/.exec(text) ?? []
  if (day !== undefined)
    return isDay(day) && Number(hour) < 24 && Number(minute) < 60 ? `${day}${hour}${minute}` : undefined
  const read = z.iso.datetime({ offset: true }).safeParse(text)
  return read.success ? new Date(read.data).toISOString().replace(/\D/g, '').slice(0, 12) : undefined
}

const flag = () => z.union([z.boolean(), oneOf('true', 'false').transform(value => value === 'true')])
const pixels = () => z.union([z.int().min(0).max(999_999).transform(String), z.string().regex(/^\d{1,6}$/)])
/** The offset of the browser's time zone, in minutes: UTC minus local time. */
const zone = () => z.union([z.int().min(-840).max(840).transform(String), z.string().regex(/^[+-]?\d{1,3}$/)])
/** Any colour depth that a browser reports; the AReq replaces it by a value of EMV's list. */
const colors = () =>
  z.union([z.int().transform(String), z.string()]).refine(value => /^[1-9]\d{0,2}$/.test(value), {
    params: { reason: 'field_value' },
  })

export const DeviceDataInfo = z.strictObject({
  browser_java_enabled: flag().optional(),
  browser_header: text(1, 2048).optional(),
  browser_language: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,35}$/)
    .optional(),
  browser_color_depth: colors().optional(),
  browser_screen_height: pixels().optional(),
  browser_screen_width: pixels().optional(),
  browser_time_zone: zone().optional(),
  user_agent: text(1, 2048).optional(),
  ip_address: z.union([z.ipv4(), z.ipv6()]).optional(),
  browser_javascript_enabled: flag().optional(),
})
export type DeviceDataInfo = z.infer<typeof DeviceDataInfo>

const billing = {
  billing_address_1: line(),
  billing_address_2: line().optional(),
  billing_address_3: line().optional(),
  billing_city: line(),
  billing_country_code: country(),
  billing_first_name: name(),
  billing_last_name: name(),
  billing_phone: phone().optional(),
  billing_postal_code: text(1, LIMITS.postalCode).optional(),
  billing_state: line().optional(),
}
const shipping = {
  shipping_address_1: line().optional(),
  shipping_address_2: line().optional(),
  shipping_address_3: line().optional(),
  shipping_address_usage_date: day().optional(),
  shipping_address_usage_indicator: digits(1, 4).optional(),
  shipping_city: line().optional(),
  shipping_country_code: country().optional(),
  shipping_first_name: name().optional(),
  shipping_last_name: name().optional(),
  shipping_method_indicator: digits(1, 7).optional(),
  shipping_name_indicator: digits(1, 2).optional(),
  shipping_phone: phone().optional(),
  shipping_postal_code: text(1, LIMITS.postalCode).optional(),
  shipping_state: line().optional(),
}
const account = {
  account_age_indicator: digits(1, 5).optional(),
  account_change_date: day().optional(),
  account_change_indicator: digits(1, 4).optional(),
  account_create_date: day().optional(),
  account_id: text(1, 64).optional(),
  account_purchases: count(9_999).optional(),
  account_pwd_change_date: day().optional(),
  account_pwd_change_indicator: digits(1, 5).optional(),
  add_card_attempts: count(999).optional(),
  payment_account_age: day().optional(),
  payment_account_indicator: digits(1, 5).optional(),
  transaction_count_day: count(999).optional(),
  transaction_count_year: count(999).optional(),
}
const order = {
  delivery_email: emailAddress().optional(),
  delivery_time_frame: digits(1, 4).optional(),
  gift_card_amount: count(999_999_999_999_999).optional(),
  gift_card_count: count(99).optional(),
  gift_card_currency_code: currency().optional(),
  installment: z.int().min(2).max(999).optional(),
  phone_number: phone().optional(),
  pre_order_date: day().optional(),
  pre_order_indicator: digits(1, 2).optional(),
  purchase_date: z
    .union([z.iso.datetime({ offset: true }), z.string().regex(/^\d{4}(-?\d\d){2}$/), z.string().regex(/^\d{14}$/)])
    .optional(),
  recurring_end: day().optional(),
  recurring_frequency: z.int().min(1).max(9_999).optional(),
  reorder_indicator: digits(1, 2).optional(),
  work_phone: phone().optional(),
}

const PASSED_OVER = [
  'alias',
  'alternate_authentication_data',
  'alternate_authentication_date',
  'alternate_authentication_method',
  'card_type',
  'category_code',
  'fraud_activity',
  'merchant_score',
  'payment_use_case',
  'prior_authentication_data',
  'prior_authentication_method',
  'prior_authentication_ref',
  'prior_authentication_time',
  'product_code',
  'requestor_id',
  'requestor_name',
  'threeds_version',
  'token',
  'total_items',
  'transaction_mode',
] as const
const passedOver = () => z.union([text(0, 2048), z.number()]).optional()
const unused = Object.fromEntries(PASSED_OVER.map(field => [field, passedOver()])) as Record<
  (typeof PASSED_OVER)[number],
  ReturnType<typeof passedOver>
>

/** The three ways to name the card; a request must use exactly one. */
const CARD_SOURCES = ['card', 'encrypted_card', 'reuse_token'] as const

const Fields = z.strictObject({
  ...unused,
  /** In minor units of the currency. */
  amount: count(LIMITS.amount),
  currency_code: currency(),
  merchant_reference: text(1, 50),
  threeds_contract_id: uuid(),
  device_info_id: text(1, 128),
  email: emailAddress(),
  ...billing,
  card: tokenId().optional(),
  encrypted_card: encryptedCard().optional(),
  public_key_alias: keyAlias().optional(),
  reuse_token: tokenId().optional(),
  acs_window_size: digits(1, 5).optional(),
  address_match: oneOf('Y', 'N').optional(),
  authentication_indicator: digits(1, 6).optional(),
  challenge_indicator: oneOf('01', '02', '03', '04', '90').optional(),
  // The channel SDK isn't accepted: it needs data of an app, for which there are no fields.
  device_channel: oneOf('Browser', '3RI').default('Browser'),
  device_data_info: DeviceDataInfo.optional(),
  message_category: oneOf('01', '02').default('01'),
  sdk_max_timeout: z.int().min(5).max(99).default(15),
  three_ri_indicator: digits(1, 11).optional(),
  ...shipping,
  ...account,
  ...order,
})

/** The forms of the fields from which threeDSRequestorPriorAuthenticationInfo is made. */
const PRIOR = {
  prior_authentication_data: { holds: isAscii, reason: 'field_format' },
  prior_authentication_method: { holds: text => /^(0?[1-9]|[89]\d)$/.test(text), reason: 'field_format' },
  prior_authentication_ref: { holds: text => text.length === 36 && isAscii(text), reason: 'field_length' },
  prior_authentication_time: { holds: text => minuteOf(text) !== undefined, reason: 'field_format' },
} as const satisfies Record<string, { holds: (text: string) => boolean; reason: string }>

export const LookupRequest = Fields.superRefine((request, context) => {
  const say = (field: string, reason: string) =>
    context.addIssue({ code: 'custom', path: [field], params: { reason }, input: undefined })
  const given = CARD_SOURCES.filter(source => request[source] !== undefined)
  if (given.length === 0) say('card', 'field_required')
  for (const source of given.slice(1)) say(source, 'field_conflict')
  if (request.encrypted_card !== undefined && request.public_key_alias === undefined)
    say('public_key_alias', 'field_required')
  if (request.encrypted_card === undefined && request.public_key_alias !== undefined)
    say('public_key_alias', 'field_conflict')
  for (const field of missingFields(request)) say(field, 'field_required')
  for (const [field, { holds, reason }] of Object.entries(PRIOR)) {
    const value = request[field as keyof typeof PRIOR]
    if (isGiven(value) && !holds(String(value))) say(field, reason)
  }
})
export type LookupRequest = z.infer<typeof LookupRequest>

/** The request as a text that is the same for equal requests: its fields are in the order of the schema. */
export function canonicalText(request: LookupRequest): string {
  return JSON.stringify(request)
}

export const JwtCreateRequest = z.strictObject({ threeds_contract_id: uuid() })
export const JwtValidateRequest = z.strictObject({
  authentication_id: uuid(),
  jwt: z
    .string()
    .min(1)
    .max(16_384)
    .refine(isPrintable, { params: { reason: 'field_characters' } }),
  threeds_contract_id: uuid(),
})
