// Rows that say whose card they hold, in the ids and columns of several providers, with the profile that reads each. What a
// provider publishes of its file stands in docs/profiles; columns beyond that are such as merchants ask for.
import type { Profile } from '../../producers/rows/profile/profile-schema.ts'
import { type Card, type Draw, serialOf } from './card.ts'
import { ASCII, NAMES, nameOf, SCRIPTS } from './names.ts'

/** One customer of ten has two cards and one has three: the customers of ten rows in succession. */
const CUSTOMERS = [0, 1, 2, 3, 4, 5, 5, 6, 6, 6]
const CUSTOMERS_OF_TEN = 7

interface Customer {
  number: number
  /** The index of the row with its first card, which is the default one. */
  first: number
}

function customerOf(index: number): Customer {
  const ten = Math.floor(index / CUSTOMERS.length)
  const place = CUSTOMERS[index % CUSTOMERS.length] ?? 0
  return { number: ten * CUSTOMERS_OF_TEN + place, first: ten * CUSTOMERS.length + CUSTOMERS.indexOf(place) }
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
const BASE_36 = `0123456789${LETTERS}`
const CAPITALS = BASE_36.toUpperCase()
const BASE_62 = `${BASE_36}${LETTERS.toUpperCase()}`
const BASE_64_URL = `${BASE_62}-_`

/** '' for JCB, which gives none. Visa, American Express and Discover: 15 digits. Mastercard: Banknet reference and day. */
function networkIdOf({ brand, draw }: Card): string {
  if (brand === 'JCB') return ''
  if (brand !== 'MASTERCARD') return `${draw.from(['0', '1', '3', '4', '5'])}${draw.digits(14)}`
  const product = draw.from(['MCC', 'MCS', 'MDG', 'MPL', 'MCG'])
  return `${product}${draw.text(CAPITALS, 6)}${twoOf(1 + draw.below(12))}${twoOf(1 + draw.below(28))}`
}

/** Mastercard's transaction link id, which only payments since June 2026 have. */
function linkIdOf({ brand, draw }: Card): string {
  if (brand !== 'MASTERCARD' || draw.below(5) < 2) return ''
  return `${draw.text(BASE_62, 1)}${draw.text(BASE_64_URL, 21)}`
}

const twoOf = (number: number) => String(number).padStart(2, '0')

interface Address {
  street: string
  city: string
  state: string
  postalCode: string
  country: string
}

const CITIES = [
  ['Springfield', 'IL', '62701', 'US', 'Main Street'],
  ['Boston', 'MA', '02108', 'US', 'Beacon Street'],
  ['München', '', '80331', 'DE', 'Sendlinger Straße'],
  ['Leipzig', '', '04109', 'DE', 'Grimmaische Straße'],
  ['Lyon', '', '69002', 'FR', 'rue de la République'],
  ['Kraków', '', '31-042', 'PL', 'ulica Floriańska'],
  ['São Paulo', 'SP', '01310-100', 'BR', 'Avenida Paulista'],
  ['London', '', 'SW1A 2AA', 'GB', 'Whitehall'],
  ['東京都千代田区', '', '100-0001', 'JP', '千代田'],
  ['Αθήνα', '', '105 57', 'GR', 'Ερμού'],
] as const

function addressOf(draw: Draw): Address {
  const [city, state, postalCode, country, street] = draw.from(CITIES)
  return { street: `${street} ${1 + draw.below(240)}`, city, state, postalCode, country }
}

/** Two names of three in ASCII. */
function holderOf(draw: Draw): string {
  return nameOf(draw.below(3) < 2 ? ASCII : NAMES[draw.from(SCRIPTS)], draw)
}

/** Numbers below ten million have ids of their own in any alphabet. */
const SERIAL_LENGTH = 7

/** A provider's ids depend on the number of the customer or card, so that a customer's rows agree. */
function idText(alphabet: string, length: number, number: number, salt: number): string {
  let state = (Math.imul(number + 1, 0x9e3779b1) ^ Math.imul(salt, 0x85ebca6b)) >>> 0
  // The number stands in the id, so that no two are the same.
  let rest = number
  let id = ''
  while (id.length < length) {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    const isLast = length - id.length <= SERIAL_LENGTH
    id += alphabet[isLast ? rest % alphabet.length : state % alphabet.length]
    if (isLast) rest = Math.floor(rest / alphabet.length)
  }
  return id
}

export interface OwnerFile {
  profile: Profile
  /** The names of the columns. */
  header: readonly string[]
  cellsOf(card: Card): readonly string[]
}

const CUSTOMER = 1
const CARD = 2

export const SHORT: OwnerFile = {
  profile: {
    profile: 1,
    name: 'content-short',
    title: 'Short ids, and nothing else of the owner',
    format: { type: 'delimited' },
    columns: {
      reference: '{card}',
      card_number: { from: 'number' },
      expiry: { month: 'month', year: 'year' },
      cardholder_name: { from: ['name'] },
    },
    on_file: {
      provider: 'shop',
      provider_account: { constant: 'main' },
      customer_id: '{customer}',
      card_id: '{card}',
    },
  },
  header: ['customer', 'card', 'number', 'month', 'year', 'name'],
  cellsOf({ index, pan, month, year, draw }) {
    const { number } = customerOf(index)
    return [`cust-${serialOf(number)}`, `c-${serialOf(index)}`, pan, month, year, nameOf(ASCII, draw)]
  },
}

export const STRIPE: OwnerFile = {
  profile: {
    profile: 1,
    name: 'content-stripe',
    title: 'Stripe, CSV export, with network transaction ids',
    format: { type: 'delimited', header: 'any_case' },
    no_card: 'skip',
    columns: {
      reference: '{card.id}',
      card_number: { from: 'card.number' },
      expiry: { month: 'card.exp_month', year: 'card.exp_year' },
      cardholder_name: { from: ['card.name'], too_long: 'cut' },
    },
    on_file: {
      provider: 'stripe',
      provider_account: { constant: 'acct_1Nv0FGQ9RKHgCVdK' },
      customer_id: '{id}',
      card_id: '{card.id}',
      cardholder_name: { from: ['card.name'] },
      network_transaction_ids: { from: 'card.transaction_ids', separator: ';' },
      transaction_link_id: { from: 'card.transaction_link_id' },
      is_default: { from: 'default_source', equals: 'card.id' },
      billing_address: {
        line1: 'card.address_line1',
        line2: 'card.address_line2',
        city: 'card.address_city',
        state: 'card.address_state',
        postal_code: { from: 'card.address_zip' },
        country: { from: 'card.address_country', other: 'drop' },
      },
    },
  },
  header: [
    'description',
    'name',
    'email',
    'id',
    'card.address_city',
    'card.address_country',
    'card.address_line1',
    'card.address_line2',
    'card.address_state',
    'card.address_zip',
    'card.exp_month',
    'card.exp_year',
    'card.id',
    'card.name',
    'card.number',
    'default_source',
    'card.transaction_ids',
    'card.transaction_link_id',
  ],
  cellsOf(card) {
    const { index, pan, month, year, draw } = card
    const { number, first } = customerOf(index)
    const name = holderOf(draw)
    const { street, city, state, postalCode, country } = addressOf(draw)
    const cardId = (at: number) => `card_1${idText(BASE_62, 23, at, CARD)}`
    return [
      draw.below(4) === 0 ? 'Subscription, monthly' : '',
      name,
      `customer.${number}@example.com`,
      `cus_${idText(BASE_62, 14, number, CUSTOMER)}`,
      city,
      country,
      street,
      '',
      state,
      postalCode,
      month,
      year,
      cardId(index),
      name,
      pan,
      cardId(first),
      networkIdOf(card),
      linkIdOf(card),
    ]
  },
}

export const ADYEN: OwnerFile = {
  profile: {
    profile: 1,
    name: 'content-adyen',
    title: 'Adyen: shopper references, and recurring detail references of 16 digits',
    format: { type: 'delimited', header: 'exact' },
    columns: {
      reference: '{RecurringDetailReference}',
      card_number: { from: 'CardNumber' },
      expiry: { from: 'ExpiryMMYYYY', form: 'MMYYYY' },
      cardholder_name: { from: ['OwnerName'], too_long: 'cut' },
    },
    on_file: {
      provider: 'adyen',
      provider_account: { from: 'MerchantAccount' },
      customer_id: '{ShopperReference}',
      card_id: '{RecurringDetailReference}',
      cardholder_name: { from: ['OwnerName'] },
      network_transaction_ids: { from: 'networkTxReference' },
      transaction_link_id: { from: 'transactionLinkId' },
      agreement: {
        from: 'RecurringContract',
        words: { RECURRING: 'RECURRING', ONECLICK: 'UNSCHEDULED', 'RECURRING,ONECLICK': 'RECURRING' },
      },
      agreed_by: { constant: 'ONLINE' },
      agreed_on: { from: 'CreationDate', form: 'timestamp' },
      billing_address: {
        line1: 'BillingStreet',
        city: 'BillingCity',
        state: 'BillingStateOrProvince',
        postal_code: { from: 'BillingPostalCode' },
        country: { from: 'BillingCountry' },
      },
    },
  },
  header: [
    'MerchantAccount',
    'ShopperEmail',
    'ShopperReference',
    'RecurringContract',
    'RecurringDetailReference',
    'CreationDate',
    'OwnerName',
    'ExpiryMMYYYY',
    'CardNumber',
    'networkTxReference',
    'transactionLinkId',
    'BillingStreet',
    'BillingCity',
    'BillingStateOrProvince',
    'BillingPostalCode',
    'BillingCountry',
  ],
  cellsOf(card) {
    const { index, pan, month, year, draw } = card
    const { number } = customerOf(index)
    const { street, city, state, postalCode, country } = addressOf(draw)
    return [
      'TestMerchantEU',
      `shopper${number}@example.com`,
      `shopper-${serialOf(number)}`,
      draw.from(['RECURRING', 'ONECLICK', 'RECURRING,ONECLICK']),
      `8${idText('0123456789', 15, index, CARD)}`,
      `${dayOf(draw)}T${twoOf(draw.below(24))}:${twoOf(draw.below(60))}:00+01:00`,
      holderOf(draw),
      `${month.padStart(2, '0')}${year}`,
      pan,
      networkIdOf(card),
      linkIdOf(card),
      street,
      city,
      state,
      postalCode,
      country,
    ]
  },
}

export const BRAINTREE: OwnerFile = {
  profile: {
    profile: 1,
    name: 'content-braintree',
    title: 'Braintree: customers of 9 to 11 digits, short tokens',
    format: { type: 'delimited' },
    no_card: 'skip',
    columns: {
      reference: '{credit_card.token}',
      card_number: { from: 'credit_card.number' },
      expiry: { from: 'credit_card.expiration', form: 'MMYYYY' },
      cardholder_name: { from: ['first_name', 'last_name'], too_long: 'cut' },
    },
    on_file: {
      provider: 'braintree',
      provider_account: { constant: 'merchant_4f7c' },
      customer_id: '{id}',
      card_id: '{credit_card.token}',
      cardholder_name: { from: ['first_name', 'last_name'] },
      network_transaction_ids: { from: 'credit_card.previous_network_transaction_id' },
      is_default: { from: 'credit_card.default', yes: ['true'], no: ['false'] },
      billing_address: {
        line1: 'credit_card.billing_street_address',
        city: 'credit_card.billing_locality',
        state: 'credit_card.billing_region',
        postal_code: { from: 'credit_card.billing_postal_code' },
        country: { from: 'credit_card.billing_country_code' },
      },
    },
  },
  header: [
    'id',
    'first_name',
    'last_name',
    'company',
    'email',
    'phone',
    'fax',
    'website',
    'credit_card.token',
    'credit_card.number',
    'credit_card.expiration',
    'credit_card.default',
    'credit_card.previous_network_transaction_id',
    'credit_card.billing_street_address',
    'credit_card.billing_locality',
    'credit_card.billing_region',
    'credit_card.billing_postal_code',
    'credit_card.billing_country_code',
  ],
  cellsOf(card) {
    const { index, pan, month, year, draw } = card
    const { number, first } = customerOf(index)
    const { street, city, state, postalCode, country } = addressOf(draw)
    const list = draw.below(2) === 0 ? ASCII : NAMES.latin
    return [
      `${10 + (number % 90)}${idText('0123456789', 9, number, CUSTOMER)}`,
      draw.from(list.given),
      draw.from(list.family),
      draw.below(8) === 0 ? 'Example GmbH & Co. KG' : '',
      `b${number}@example.com`,
      `+49 30 ${draw.digits(3)} ${draw.digits(4)}`,
      '',
      '',
      idText(BASE_36.slice(10), 8, index, CARD),
      pan,
      `${month.padStart(2, '0')}${year}`,
      String(index === first),
      networkIdOf(card),
      street,
      city,
      state,
      postalCode,
      country,
    ]
  },
}

/** NDJSON, with every member that a reference keeps. */
export const NUMERIC: OwnerFile = {
  profile: {
    profile: 1,
    name: 'content-numeric',
    title: 'Numeric ids: customers of 12 digits, cards of 16, and all members',
    format: { type: 'ndjson' },
    columns: {
      reference: '{card_id}',
      card_number: { from: 'number' },
      expiry: { month: 'exp_month', year: 'exp_year' },
      cardholder_name: { from: ['holder'], too_long: 'cut' },
    },
    on_file: {
      provider: 'numeric',
      provider_account: { constant: '100200' },
      customer_id: '{customer_id}',
      card_id: '{card_id}',
      cardholder_name: { from: ['holder'] },
      network_transaction_ids: { from: 'scheme_transaction_id' },
      transaction_link_id: { from: 'transaction_link_id' },
      first_amount: { from: 'first_amount', unit: 'minor' },
      first_currency: { from: 'first_currency' },
      first_date: { from: 'first_date', form: 'YYYY-MM-DD' },
      agreement: {
        from: 'agreement',
        words: { subscription: 'RECURRING', instalments: 'INSTALMENT', 'one-click': 'UNSCHEDULED' },
      },
      agreed_by: { from: 'channel', words: { web: 'ONLINE', moto: 'TELEPHONE', mail: 'MAIL' } },
      agreed_on: { from: 'agreed_on', form: 'YYYY-MM-DD' },
      is_default: { from: 'is_default', yes: ['true'], no: ['false'] },
      billing_address: {
        line1: 'street',
        city: 'city',
        state: 'state',
        postal_code: { from: 'zip' },
        country: { from: 'country' },
      },
    },
  },
  header: [
    'customer_id',
    'card_id',
    'number',
    'exp_month',
    'exp_year',
    'holder',
    'scheme_transaction_id',
    'transaction_link_id',
    'first_amount',
    'first_currency',
    'first_date',
    'agreement',
    'channel',
    'agreed_on',
    'is_default',
    'street',
    'city',
    'state',
    'zip',
    'country',
  ],
  cellsOf(card) {
    const { index, pan, month, year, draw } = card
    const { number, first } = customerOf(index)
    const { street, city, state, postalCode, country } = addressOf(draw)
    const day = dayOf(draw)
    return [
      `70${idText('0123456789', 10, number, CUSTOMER)}`,
      `90${idText('0123456789', 14, index, CARD)}`,
      pan,
      month,
      year,
      holderOf(draw),
      networkIdOf(card),
      linkIdOf(card),
      String(100 + draw.below(25_000)),
      draw.from(['EUR', 'USD', 'GBP']),
      day,
      draw.from(['subscription', 'instalments', 'one-click']),
      draw.from(['web', 'web', 'web', 'moto', 'mail']),
      day,
      String(index === first),
      street,
      city,
      state,
      postalCode,
      country,
    ]
  },
}

/** A merchant's own vault: UUIDs, NTIs and addresses. */
export const UUIDS: OwnerFile = {
  profile: {
    profile: 1,
    name: 'content-uuid',
    title: 'UUIDs of customers and cards, with NTIs and addresses',
    format: { type: 'delimited' },
    columns: {
      reference: '{card_id}',
      card_number: { from: 'number' },
      expiry: { from: 'expiry', form: 'MM/YY' },
      cardholder_name: { from: ['holder'], too_long: 'cut' },
    },
    on_file: {
      provider: 'vault',
      provider_account: { constant: 'eu-1' },
      customer_id: '{customer_id}',
      card_id: '{card_id}',
      cardholder_name: { from: ['holder'] },
      network_transaction_ids: { from: 'nti' },
      billing_address: {
        line1: 'street',
        city: 'city',
        state: 'state',
        postal_code: { from: 'zip' },
        country: { from: 'country' },
      },
    },
  },
  header: ['customer_id', 'card_id', 'number', 'expiry', 'holder', 'nti', 'street', 'city', 'state', 'zip', 'country'],
  cellsOf(card) {
    const { index, pan, month, year, draw } = card
    const { number } = customerOf(index)
    const { street, city, state, postalCode, country } = addressOf(draw)
    return [
      uuidOf(number, CUSTOMER),
      uuidOf(index, CARD),
      pan,
      `${month.padStart(2, '0')}/${year.slice(2)}`,
      holderOf(draw),
      networkIdOf(card),
      street,
      city,
      state,
      postalCode,
      country,
    ]
  },
}

/** UUID version 4 in form. */
function uuidOf(number: number, salt: number): string {
  const hex = idText('0123456789abcdef', 32, number, salt)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}

/** A day of the last years, YYYY-MM-DD. */
function dayOf(draw: Draw): string {
  return `${2021 + draw.below(5)}-${twoOf(1 + draw.below(12))}-${twoOf(1 + draw.below(28))}`
}
