// Texts of the OpenAPI document about the request of a lookup. Each description ends with the matching member of the
// AReq message, in brackets. Indicators are those of EMV 3-D Secure.

import type { Notes } from '../../../../src/job/describe/annotate.ts'
import { ENCRYPTED_CARD } from '../../../../src/job/describe/field-notes.ts'

const UNUSED = 'Accepted for compatibility. Nothing is made of it.'
const DAY = 'YYYY-MM-DD or YYYYMMDD.'
const COUNTRY = 'ISO 3166-1, alpha-2 or alpha-3.'
const STATE =
  'Code of ISO 3166-2, with or without the country (`US-CA` or `CA`). A name is accepted, and not passed on.'
const PHONE = 'With country code, such as `+49 30 123456`; without one it is not passed on. At most 20 characters.'
const AGE =
  '01 no account, 02 created during this transaction, 03 less than 30 days, 04 30 to 60 days, 05 more than 60 days.'
const CHANGED = '01 during this transaction, 02 less than 30 days ago, 03 30 to 60 days ago, 04 more than 60 days ago.'
const JS = 'Where one of the values that JavaScript reads is absent, the browser counts as one without JavaScript.'

export const LOOKUP_NOTES: Notes = {
  'lookup.body.amount': 'Amount in minor units of `currency_code`: 1099 is 10.99 EUR.',
  'lookup.body.currency_code':
    'Currency of the amount, ISO 4217 alphabetic code of the current list, with a minor unit.',
  merchant_reference: "The merchant's own reference of the payment, at most 50 characters.",
  device_info_id: "Id of the browser's session: the `jti` of the JWT of createJwt. At most 128 characters.",
  email:
    "Cardholder's e-mail address (email). One that is no dot-atom (RFC 5322, section 3.4) is not sent to the directory server.",
  billing_address_1: 'Billing address, first line, at most 50 characters (billAddrLine1).',
  billing_address_2: 'Billing address, second line, at most 50 characters (billAddrLine2).',
  billing_address_3: 'Billing address, third line, at most 50 characters (billAddrLine3).',
  billing_city: 'City of the billing address, at most 50 characters (billAddrCity).',
  billing_country_code: `Country of the billing address, ${COUNTRY} (billAddrCountry).`,
  billing_first_name: "Cardholder's first name, at most 22 characters (cardholderName).",
  billing_last_name: "Cardholder's last name, at most 22 characters (cardholderName).",
  billing_phone: `Cardholder's telephone number (mobilePhone), where \`phone_number\` is absent. ${PHONE}`,
  billing_postal_code: 'Postal code of the billing address, at most 16 characters (billAddrPostCode).',
  billing_state: `State of the billing address (billAddrState). ${STATE}`,
  'lookup.body.card': 'Reuse token of the card. Exactly one of `card`, `reuse_token` and `encrypted_card` is given.',
  'lookup.body.reuse_token':
    'Reuse token of the card. Exactly one of `card`, `reuse_token` and `encrypted_card` is given.',
  'lookup.body.encrypted_card': `${ENCRYPTED_CARD} Exactly one of \`card\`, \`reuse_token\` and \`encrypted_card\` is given.`,
  'lookup.body.public_key_alias':
    'Alias of the capture key that the card is encrypted to. Required with `encrypted_card`, and refused without it.',
  acs_window_size:
    'Size of the window for a challenge (challengeWindowSize): 01 250 x 400, 02 390 x 400, 03 500 x 600, 04 600 x 400 pixels, 05 full screen.',
  address_match: 'Whether the shipping address is the billing address (addrMatch): `Y` or `N`.',
  authentication_indicator:
    'What the authentication is for (threeDSRequestorAuthenticationInd): 01 payment, 02 recurring, 03 instalment, 04 add card, 05 maintain card, 06 verify the cardholder for a token. 01 where it is absent. 02 and 03 require `recurring_frequency`, 03 also `installment`.',
  challenge_indicator:
    'Whether a challenge is wished (threeDSRequestorChallengeInd): 01 no preference, 02 no challenge, 03 challenge, 04 challenge required by mandate, 90 a value of the card network.',
  device_channel:
    'Where the authentication comes from: `Browser`, or `3RI` for one that the merchant starts without the cardholder. `3RI` requires `three_ri_indicator`.',
  device_data_info: "What is known of the cardholder's browser. Browser channel only.",
  browser_java_enabled: `Whether the browser can run Java (browserJavaEnabled). ${JS}`,
  browser_header: 'Accept header of the browser, at most 2,048 characters (browserAcceptHeader).',
  browser_language: 'Language of the browser, BCP 47 (browserLanguage).',
  browser_color_depth: `Bits of a colour of the screen (browserColorDepth), as the browser says it; the next lower value of EMV's list is sent. ${JS}`,
  browser_screen_height: `Height of the screen in pixels (browserScreenHeight). ${JS}`,
  browser_screen_width: `Width of the screen in pixels (browserScreenWidth). ${JS}`,
  browser_time_zone: `Minutes between UTC and the time of the browser, as getTimezoneOffset answers (browserTZ). ${JS}`,
  user_agent: 'User-Agent header of the browser, at most 2,048 characters (browserUserAgent).',
  ip_address: 'IP address of the browser, IPv4 or IPv6 (browserIP).',
  browser_javascript_enabled: 'Whether the browser runs JavaScript (browserJavascriptEnabled).',
  message_category: '01 payment authentication, 02 non-payment authentication (messageCategory).',
  sdk_max_timeout:
    'Minutes that an app waits for a challenge (sdkMaxTimeout), 5 to 99. Not passed on: no app channel is served.',
  three_ri_indicator:
    'Type of the 3RI request (threeRIInd): 01 recurring, 02 instalment, 03 add card, 04 maintain card, 05 account verification, 06 split or delayed shipment, 07 top-up, 08 mail order, 09 telephone order, 10 whitelist status, 11 other payment. Required with `3RI`. 01 and 02 require `recurring_frequency`, 02 also `installment`.',
  shipping_address_1: 'Shipping address, first line, at most 50 characters (shipAddrLine1).',
  shipping_address_2: 'Shipping address, second line, at most 50 characters (shipAddrLine2).',
  shipping_address_3: 'Shipping address, third line, at most 50 characters (shipAddrLine3).',
  shipping_address_usage_date: `When the shipping address was first used (shipAddressUsage). ${DAY}`,
  shipping_address_usage_indicator:
    'Since when the shipping address is used (shipAddressUsageInd): 01 this transaction, 02 less than 30 days, 03 30 to 60 days, 04 more than 60 days.',
  shipping_city: 'City of the shipping address, at most 50 characters (shipAddrCity).',
  shipping_country_code: `Country of the shipping address, ${COUNTRY} (shipAddrCountry).`,
  shipping_first_name: 'First name of the recipient, at most 22 characters. Not passed on.',
  shipping_last_name: 'Last name of the recipient, at most 22 characters. Not passed on.',
  shipping_method_indicator:
    'How goods are shipped (shipIndicator): 01 to the billing address, 02 to another verified address, 03 to another address, 04 to a store, 05 digital goods, 06 tickets, not shipped, 07 other.',
  shipping_name_indicator:
    "Whether the recipient's name is the account's (shipNameIndicator): 01 the same, 02 another.",
  shipping_phone: 'Telephone number of the recipient, at most 20 characters. Not passed on.',
  shipping_postal_code: 'Postal code of the shipping address, at most 16 characters (shipAddrPostCode).',
  shipping_state: `State of the shipping address (shipAddrState). ${STATE}`,
  account_age_indicator: `Age of the cardholder's account at the shop (chAccAgeInd): ${AGE}`,
  account_change_date: `When the account was last changed (chAccChange). ${DAY}`,
  account_change_indicator: `When the account was last changed (chAccChangeInd): ${CHANGED}`,
  account_create_date: `When the account was created (chAccDate). ${DAY}`,
  account_id: "Id of the cardholder's account at the shop, at most 64 characters. Not passed on.",
  account_purchases: 'Purchases with the account in the last six months (nbPurchaseAccount).',
  account_pwd_change_date: `When the password of the account was last changed (chAccPwChange). ${DAY}`,
  account_pwd_change_indicator:
    'When the password was last changed (chAccPwChangeInd): 01 never, 02 during this transaction, 03 less than 30 days ago, 04 30 to 60 days ago, 05 more than 60 days ago.',
  add_card_attempts: 'Attempts to add a card in the last 24 hours (provisionAttemptsDay).',
  payment_account_age: `When the card was added to the account (paymentAccAge). ${DAY}`,
  payment_account_indicator: `Since when the card is with the account (paymentAccInd): ${AGE}`,
  transaction_count_day: 'Transactions of the account in the last 24 hours (txnActivityDay).',
  transaction_count_year: 'Transactions of the account in the last year (txnActivityYear).',
  delivery_email: 'E-mail address that goods are delivered to (deliveryEmailAddress).',
  delivery_time_frame:
    'When goods are delivered (deliveryTimeframe): 01 electronically, 02 on the same day, 03 overnight, 04 in two days or more.',
  gift_card_amount:
    'Amount of gift cards in the purchase, in whole major units of `gift_card_currency_code` (giftCardAmount).',
  gift_card_count: 'Number of gift cards in the purchase, 0 to 99 (giftCardCount).',
  gift_card_currency_code: 'Currency of the gift cards, ISO 4217 alphabetic code (giftCardCurr).',
  installment: 'Number of instalments, 2 to 999 (purchaseInstalData).',
  phone_number: `Cardholder's mobile number (mobilePhone). ${PHONE}`,
  pre_order_date: `When goods that are ordered ahead are there (preOrderDate). ${DAY}`,
  pre_order_indicator: 'Whether goods are there yet (preOrderPurchaseInd): 01 available, 02 ordered ahead.',
  purchase_date:
    'When the purchase was made (purchaseDate), RFC 3339 with an offset, YYYY-MM-DD, YYYYMMDD or YYYYMMDDHHMMSS in UTC. The time of the lookup where it is absent.',
  recurring_end: `After this day no payment of the series is made (recurringExpiry). Absent: the series has no end. ${DAY}`,
  recurring_frequency: 'Least number of days between payments of the series (recurringFrequency).',
  reorder_indicator: 'Whether goods are ordered again (reorderItemsInd): 01 first time, 02 again.',
  work_phone: `Cardholder's telephone number at work (workPhone). ${PHONE}`,
  prior_authentication_data:
    'Data of an earlier authentication (threeDSReqPriorAuthData). A 3RI payment with Mastercard or Maestro requires it and `prior_authentication_time`.',
  prior_authentication_method: 'How the cardholder was authenticated earlier (threeDSReqPriorAuthMethod).',
  prior_authentication_ref: 'ACS transaction id of the earlier authentication (threeDSReqPriorRef).',
  prior_authentication_time: 'When the earlier authentication was (threeDSReqPriorAuthTimestamp).',
  product_code: 'What is bought: PHY goods, CHA cheques, ACF account funding, QCT quasi-cash, PAL prepaid.',
  'lookup.body.threeds_version': UNUSED,
  'lookup.body.token': UNUSED,
  ...Object.fromEntries(
    [
      ...['alias', 'alternate_authentication_data', 'alternate_authentication_date', 'alternate_authentication_method'],
      ...['card_type', 'category_code', 'fraud_activity', 'merchant_score', 'payment_use_case', 'requestor_id'],
      ...['requestor_name', 'total_items', 'transaction_mode'],
    ].map(name => [name, UNUSED]),
  ),
}
